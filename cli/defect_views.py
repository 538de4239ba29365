"""Shows where a kubelet's answer differs from the documented one, and by which defects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.reports.answers import ShapedAnswer, ShownDefect
from numaproof.simulation.admission import NodeView
from numaproof.simulation.amounts import nodes_text, size
from numaproof.simulation.explanation import Candidates, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from numaproof.protocol.sets import NUMASet
    from numaproof.simulation.defects import DefectNote
    from numaproof.simulation.explanation import ExplanationStep
    from numaproof.simulation.simulate import Answer, DefectWarning

_SUBJECTS = {"start": "the start", "node": "the node in the end"}
_PARTS = {"today": "before the upgrade", "staying": "without a drain", "drained": "with a drain"}
_NONE = "none"

Difference = tuple[str, str, str]
"""What differs, what the kubelet answers, and what is documented."""


def shaped_answers(warnings: Sequence[DefectWarning]) -> tuple[ShapedAnswer, ...]:
    """The answers that the warnings are about, as a report shows them."""
    return tuple(_shaped(one) for one in warnings)


def _shaped(one: DefectWarning) -> ShapedAnswer:
    subject = one.pod or _SUBJECTS[one.part]
    if one.container:
        subject += f", container {one.container}"
    names = " and ".join(defect.name for defect in one.defects)
    summary = f"differs from the documented answer because of {names}"
    if one.follows:
        summary = f"follows from an earlier answer that {names} shaped"
    return ShapedAnswer(
        subject,
        summary,
        tuple(differences(one.kubelet, one.documented)),
        # Said once, where they make a difference of their own.
        ()
        if one.follows
        else tuple(
            ShownDefect(each.name, each.what, each.page, each.issue) for each in one.defects
        ),
    )


def differences(kubelet: Answer | None, documented: Answer | None) -> Iterator[Difference]:
    """What differs between two answers, in the words of the table of containers."""
    sides = [dict(_described(one)) for one in (kubelet, documented)]
    for what in dict.fromkeys(key for side in sides for key in side):
        mine, theirs = (side.get(what, _NONE) or _NONE for side in sides)
        if mine != theirs:
            yield what, mine, theirs


def note_lines(notes: Sequence[DefectNote], described: Callable[[Any], str]) -> Iterator[str]:
    """A line about each answer that defects shaped, and one about where each defect is described.

    `described` gives the text of an answer, or of None for no such answer.
    """
    for note in notes:
        about = ", ".join(filter(None, (_PARTS.get(note.part, note.part), note.subject)))
        names = " and ".join(one.name for one in note.defects)
        kubelet, documented = described(note.kubelet), described(note.documented)
        yield f"{about}: {kubelet} because of {names}; documented: {documented}"
    for one in dict.fromkeys(one for note in notes for one in note.defects):
        yield f"{one.name}: {one.what} ({' · '.join(filter(None, (one.page, one.issue)))})"


def _described(answer: Answer | None) -> Iterator[tuple[str, str]]:
    match answer:
        case messages.StartRefused():
            yield "start", f"refused: {answer.stage}: {answer.message}"
        case messages.Started():
            yield from _described_start(answer)
        case messages.AdmissionRefused():
            yield "answer", f"refused: {answer.reason}: {answer.message}"
        case messages.Container():
            yield from described_container(answer)
        case Explanation():
            yield "explanation", answer.summary
            yield from ((f"step {n}", _step_text(one)) for n, one in enumerate(answer.steps, 1))
        case NodeView():
            yield from _described_node(answer)
        case dict():
            yield from _described_containers(answer)


def _described_start(start: messages.Started) -> Iterator[tuple[str, str]]:
    yield "start", "accepted"
    yield "allocatable CPUs", str(start.cpus.allocatable)
    yield "allocatable memory", ", ".join(map(block_text, start.memory))


def _described_containers(containers: messages.Containers) -> Iterator[tuple[str, str]]:
    yield "answer", "admitted"
    for name, held in containers.items():
        for what, text in described_container(held):
            yield f"{name}: {what}", text


def described_container(held: messages.Container) -> Iterator[tuple[str, str]]:
    """What a container holds, by the name of each part."""
    yield "exclusive CPUs", str(held.exclusive)
    if not held.exclusive:
        yield "CPUs of the shared pool", str(held.cpus)
    yield "memory", ", ".join(block_text(block) for block in held.memory)
    for resource, ids in (held.devices or {}).items():
        yield resource, " ".join(ids)
    preferred = "" if held.affinity.preferred else ", not preferred"
    numa = held.affinity.numa
    yield "aligned to", "" if numa is None else nodes_text(numa) + preferred


def _described_node(node: NodeView) -> Iterator[tuple[str, str]]:
    yield "reserved CPUs", str(node.reserved)
    yield "shared pool", str(node.shared)
    for one in node.memory:
        amounts = (size(each) for each in (one.total, one.reserved, one.allocated, one.free))
        words = ("total", "reserved", "allocated", "free")
        text = ", ".join(f"{amount} {word}" for amount, word in zip(amounts, words, strict=True))
        yield f"{one.type} of node {one.node}", f"{text}, with {nodes_text(one.group)}"
    for device in node.devices:
        yield f"{device.resource} {device.id}", f"{device.pod} {device.container}".strip()


def _step_text(step: ExplanationStep) -> str:
    candidates = getattr(step, "candidates", Candidates()).told
    return "; ".join((step.text, *(f"{nodes_text(one.numa)}: {one.text}" for one in candidates)))


def block_text(block: messages.MemoryBlock, aligned: NUMASet | None = None) -> str:
    """What a block is of, and where, unless it is where its container is aligned to."""
    what = size(block.size) + ("" if block.type == "memory" else f" {block.type}")
    return what if block.numa == aligned else f"{what} on {nodes_text(block.numa)}"
