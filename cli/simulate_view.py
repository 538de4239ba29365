"""Turns the result of a simulation into a report for users."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from numaproof.cli.comparison_view import comparison_grid, difference_sections, fix_texts
from numaproof.cli.node_view import (
    doubts,
    node_sections,
    room_lines,
    room_summary,
    state_sections,
)
from numaproof.cli.summary_view import MAX_IN_FULL, refusal_section, workload_grid
from numaproof.inputs.documents import dotted_path
from numaproof.inputs.plurals import format_numbers, plural
from numaproof.inputs.sizes import size
from numaproof.protocol import messages
from numaproof.protocol.events import Owner
from numaproof.protocol.sets import CPUSet
from numaproof.reports import answers
from numaproof.reports.layout import RESERVED, DrawnDevice, DrawnMemory, Stock
from numaproof.simulation import explaining
from numaproof.simulation.admission import UNSCHEDULABLE, NodeView
from numaproof.simulation.refusal_groups import refusal_groups
from numaproof.simulation.requests import nodes_text
from numaproof.simulation.state_files import refused_file

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from typing import Any

    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.sets import NUMASet
    from numaproof.simulation.admission import (
        Answer,
        DefectWarning,
        PodResult,
        Question,
    )
    from numaproof.simulation.configuration_check import ConfigurationFinding
    from numaproof.simulation.defects import DefectNote, NamedDefect
    from numaproof.simulation.lint import Crash
    from numaproof.simulation.what_ifs import NodeSimulation


_SUBJECTS = {"start": "the kubelet's start", "node": "the node after the last pod"}
_PARTS = {"today": "before the upgrade", "staying": "without a drain", "drained": "with a drain"}
_NONE = "none"

Difference = tuple[str, str, str]
"""What differs, the kubelet's answer, and the documented answer."""


def shaped_answer(warning: DefectWarning) -> answers.ShapedAnswer:
    """Returns the part of the report for a warning."""
    subject = warning.pod or _SUBJECTS[warning.part]
    if warning.container:
        subject += f", container {warning.container}"
    names = " and ".join(defect.name for defect in warning.defects)
    summary = f"differs from the documented answer because of {names}"
    if warning.follows:
        summary = f"differs as a consequence of an earlier answer, because of {names}"
    return answers.ShapedAnswer(
        subject,
        summary,
        tuple(differences(warning.kubelet, warning.documented_answer)),
        # Describe a defect only where it has a direct effect.
        () if warning.follows else tuple(map(_shown_defect, warning.defects)),
    )


def _crash(crash: Crash) -> answers.ShapedAnswer:
    summary = f"{crash.message} ({crash.fix})"
    return answers.ShapedAnswer(
        dotted_path(crash.path), summary, (), (_shown_defect(crash.defect),)
    )


def _shown_defect(defect: NamedDefect) -> answers.ShownDefect:
    return answers.ShownDefect(defect.name, defect.what, defect.page, defect.issue)


def differences(kubelet: Answer | None, documented_answer: Answer | None) -> Iterator[Difference]:
    """Yields the differences between two answers, in the terms used by the table of containers."""
    sides = [dict(_describe(one)) for one in (kubelet, documented_answer)]
    for what in dict.fromkeys(key for side in sides for key in side):
        mine, theirs = (side.get(what, _NONE) or _NONE for side in sides)
        if mine != theirs:
            yield what, mine, theirs


def note_lines(notes: Sequence[DefectNote], describe: Callable[[Any], str]) -> Iterator[str]:
    """Yields a line for each answer affected by defects, then a line for each defect.

    Args:
        notes: the affected answers.
        describe: returns the text for an answer; called with None if there is no answer.
    """
    for note in notes:
        about = ", ".join(filter(None, (_PARTS.get(note.part, note.part), note.subject)))
        names = " and ".join(one.name for one in note.defects)
        kubelet, documented = describe(note.kubelet), describe(note.documented_answer)
        yield f"{about}: {kubelet} because of {names}; documented: {documented}"
    for one in dict.fromkeys(one for note in notes for one in note.defects):
        yield str(_shown_defect(one))


def _describe(answer: Answer | None) -> Iterator[tuple[str, str]]:
    match answer:
        case messages.StartRefused():
            yield "start", f"refused: {answer.stage}: {answer.message}"
        case messages.Started():
            yield from _describe_start(answer)
        case messages.AdmissionRefused():
            yield "answer", f"refused: {answer.reason}: {answer.message}"
        case messages.Container():
            yield from describe_container(answer)
        case NodeView():
            yield from _describe_node(answer)
        case dict():
            yield from _describe_containers(answer)


def _describe_start(start: messages.Started) -> Iterator[tuple[str, str]]:
    yield "start", "accepted"
    yield "allocatable CPUs", str(start.cpus.allocatable)
    yield "allocatable memory", ", ".join(map(block_text, start.memory))


def _describe_containers(containers: messages.Containers) -> Iterator[tuple[str, str]]:
    yield "answer", "admitted"
    for name, held in containers.items():
        for what, text in describe_container(held):
            yield f"{name}: {what}", text


def describe_container(container: messages.Container) -> Iterator[tuple[str, str]]:
    """Yields the resources of a container as (name, value) pairs."""
    yield "exclusive CPUs", str(container.exclusive)
    if not container.exclusive:
        yield "CPUs of the shared pool", str(container.cpus)
    yield "memory", ", ".join(block_text(block) for block in container.memory)
    for resource, ids in (container.devices or {}).items():
        yield resource, " ".join(ids)
    preferred = "" if container.affinity.preferred else ", not preferred"
    numa = container.affinity.numa
    yield "aligned to", "" if numa is None else nodes_text(numa) + preferred


def _describe_node(node: NodeView) -> Iterator[tuple[str, str]]:
    yield "reserved CPUs", str(node.reserved)
    yield "shared pool", str(node.shared)
    for one in node.memory:
        amounts = (size(each) for each in (one.total, one.reserved, one.allocated, one.free))
        words = ("total", "reserved", "allocated", "free")
        text = ", ".join(f"{amount} {word}" for amount, word in zip(amounts, words, strict=True))
        yield f"{one.type} of node {one.node}", f"{text}, with {nodes_text(one.group)}"
    for device in node.devices:
        yield f"{device.resource} {device.id}", f"{device.pod} {device.container}".strip()


def block_text(block: messages.MemoryBlock, numa: NUMASet | None = None) -> str:
    """Formats a memory block, with its nodes unless the container is aligned to them."""
    what = size(block.size) + ("" if block.type == "memory" else f" {block.type}")
    return what if block.numa == numa else f"{what} on {nodes_text(block.numa)}"


_MARKS: dict[explaining.Preference, answers.Mark] = {
    "preferred": "good",
    "possible": "fair",
    "impossible": "bad",
}
_MAX_DEVICES = 4


_MAX_WARNINGS = 5


def answer(
    simulation: NodeSimulation,
    question: Question,
    machine: str,
    explained_pods: Container[str] = (),
    product: str = "",
) -> answers.AnswerReport:
    """Returns the report of a simulation.

    If there are many pods, they are summarised.

    Args:
        simulation: the simulation.
        question: the node.
        machine: the machine as the user named it.
        explained_pods: the pods whose steps are shown even if there are many.
        product: the product that may add settings to the configuration; empty if none does.
    """
    node, start = simulation.node, simulation.start
    shaped = (*map(_crash, simulation.crashes), *map(shaped_answer, simulation.warnings))
    setting = [("machine", machine), ("Kubernetes", question.kubernetes)]
    if node is None:
        assert isinstance(start, messages.StartRefused)
        report = _refused_start(start, question, setting, simulation.errors, product)
        report = replace(report, shaped_answers=shaped, inputs=simulation.notes)
        return _with_comparison(report, simulation, question)
    policies = node.policies
    setting += [
        ("CPU Manager", policies.cpu),
        ("Memory Manager", policies.memory),
        ("Topology Manager", f"{policies.topology}, scope {policies.scope}"),
    ]
    title = _verdict(simulation.pods)
    unsure = tuple(doubts(simulation, question))
    if question.state:
        setting.append(("state", question.state.folder or "none"))
        on_node = f"{plural(len(simulation.readmissions), 'pod')} on the node"
        on_node = ", ".join((on_node, *unsure))
        title = f"{on_node}; {title}" if simulation.pods else on_node
    if simulation.warnings:
        title += (
            f"; {plural(len(simulation.warnings), 'answer')} affected by defects of the kubelet"
        )
    if simulation.crashes:
        title = f"The kubelet can panic or hang; without that defect: {title}"
    report = _report(
        title,
        simulation.pods,
        Stage(tuple(_remaining((*simulation.readmissions, *simulation.pods)).values()), node),
        question,
        (*state_sections(simulation, question), *node_sections(simulation)),
    )
    if len(simulation.pods) > MAX_IN_FULL:
        report = _summary_of(report, simulation.pods, explained_pods)
        report = replace(report, grids=(workload_grid(simulation.workloads),))
        if len(shaped) > _MAX_WARNINGS:
            more = f"and {plural(len(shaped) - _MAX_WARNINGS, 'more answer')}: see --json"
            shaped = (*shaped[:_MAX_WARNINGS], answers.ShapedAnswer("defects", more, (), ()))
    if simulation.comparison:
        report = replace(
            _with_comparison(report, simulation, question), rows=(), stories=(), remarks=()
        )
    return replace(
        report,
        good=all(one.refusal is None for one in (*simulation.readmissions, *simulation.pods)),
        is_assumed=bool(unsure),
        setting=tuple(setting),
        shaped_answers=shaped,
        limits=tuple(_limits(simulation)),
        inputs=simulation.notes,
        what_ifs=tuple(_what_ifs(simulation, question)),
    )


def _with_comparison(
    report: answers.AnswerReport, simulation: NodeSimulation, question: Question
) -> answers.AnswerReport:
    """Returns a report with the comparison of configurations, if there is one, and no drawing."""
    has_pods = bool(question.pods_on_node)
    if not simulation.comparison:
        return report
    return replace(
        report,
        sections=tuple(difference_sections(simulation.comparison)),
        grids=(comparison_grid(simulation.comparison, has_pods=has_pods),),
        is_drawn=False,
    )


def _summary_of(
    report: answers.AnswerReport, results: Sequence[PodResult], explained_pods: Container[str]
) -> answers.AnswerReport:
    """Returns a report about many pods, with causes instead of each pod."""
    refusals = refusal_groups(results)
    sections = report.sections
    if refusals:
        sections = (refusal_section(refusals), *sections)
    return replace(
        report,
        rows=(),
        stories=tuple(story for story in report.stories if story.pod in explained_pods),
        sections=sections,
        remarks=tuple(_remarks(results, by_cause=True)),
        is_drawn=False,
    )


def _verdict(pods: Sequence[PodResult]) -> str:
    refused = sum(one.refusal is not None for one in pods)
    count = plural(len(pods), "pod")
    room = [(one.pod, room_summary(one.removals)) for one in pods if one.removals]
    if refused:
        ((pod, summary), *more) = room or [("", "")]
        about = f"for {pod}: " if refused > 1 else ""
        summary = f"; {about}{summary}" if summary and not more else ""
        return f"{refused} of {count} refused{summary}"
    return f"{count} admitted, none refused"


def _refused_start(
    start: messages.StartRefused,
    question: Question,
    setting: Sequence[tuple[str, str]],
    errors: Sequence[ConfigurationFinding],
    product: str,
) -> answers.AnswerReport:
    subject = "KubeletConfiguration"
    if question.state and (file := refused_file(start)):
        subject = f"{question.state.folder}/{file}"
    story = start_story(subject, start, errors)
    title = "The kubelet does not start"
    if errors and product:
        title += f" with these settings alone; {product} may set more"
    return answers.AnswerReport(
        title, False, tuple(setting), (), (story,), question.machine, is_drawn=False
    )


def start_story(
    subject: str, start: messages.StartRefused, errors: Sequence[ConfigurationFinding]
) -> answers.Story:
    """Returns why a kubelet doesn't start, and how to fix the errors in its configuration."""
    said = f"{start.stage}: {start.message}"
    fixes = tuple(fix_texts(errors))
    is_file = not errors and refused_file(start)
    advice = ("run `numaproof state check` to see what is wrong with the file",) if is_file else ()
    return answers.Story(subject, False, said, "no pod can run", (), advice, fixes=fixes)


class Stage(NamedTuple):
    """The results of all pods on the node at some time, and the node at that time."""

    results: tuple[PodResult, ...]
    node: NodeView


def _report(
    title: str,
    results: Sequence[PodResult],
    stage: Stage,
    question: Question,
    sections: Iterable[answers.Section],
    *,
    are_arriving: bool = True,
) -> answers.AnswerReport:
    """Returns the report about some results, with a drawing of the node."""
    return answers.AnswerReport(
        title=title,
        good=all(one.refusal is None for one in results),
        setting=(),
        rows=tuple(_rows(results)),
        stories=tuple(_stories(results, can_explain=are_arriving and question.state is not None)),
        machine=question.machine,
        owners=tuple(_owners(*stage)),
        shared=str(stage.node.shared),
        stock=_stock(stage.node, question.machine),
        sections=tuple(sections),
        remarks=tuple(_remarks(results)),
    )


def _what_ifs(simulation: NodeSimulation, question: Question) -> Iterator[answers.AnswerReport]:
    """Yields the report of each what-if."""
    present = _remaining((*simulation.readmissions, *simulation.pods))
    for step in simulation.steps:
        if step.node is None:
            assert step.refusal is not None
            said = f"{step.refusal.stage}: {step.refusal.message}"
            story = answers.Story("restart", False, said, "no pod can run", (), ())
            yield answers.AnswerReport(
                "The kubelet does not restart",
                False,
                (),
                (),
                (story,),
                question.machine,
                is_drawn=False,
            )
            return
        shown: Sequence[PodResult] = step.pods
        if step.action == "remove":
            for name in step.removed_pods:
                present.pop(name, None)
            title = f"Without {', '.join(step.removed_pods)}"
        elif step.action == "restart":
            shown = [one for one in step.pods if _has_changed(one, present[one.pod])]
            kept = len(step.pods) - len(shown)
            title = f"After a restart, {plural(kept, 'pod')} unchanged, {len(shown)} changed"
        else:
            title = f"With {step.subject}: {_verdict(step.pods)}"
        present = _remaining((*present.values(), *step.pods))
        # Who holds what is long, so it is shown at the beginning and at the end.
        is_last = step is simulation.steps[-1]
        sections = node_sections(step, with_holdings=is_last)
        report = _report(
            title,
            shown,
            Stage(tuple(present.values()), step.node),
            question,
            sections,
            are_arriving=step.action == "then",
        )
        if len(shown) > MAX_IN_FULL:
            report = _summary_of(report, shown, ())
        yield report


def _remaining(results: Sequence[PodResult]) -> dict[str, PodResult]:
    """Returns the last result of each pod, without pods that a critical pod evicts."""
    found = {one.pod: one for one in results}
    for one in results:
        for name in one.preempted:
            found.pop(name, None)
    return found


def _has_changed(after: PodResult, before: PodResult) -> bool:
    """Whether a pod has other resources than before; the shared pool changes all the time."""
    held, had = (
        {name: (each.exclusive, each.memory, each.devices) for name, each in of.items()}
        for of in (after.containers or {}, before.containers or {})
    )
    return held != had or after.refusal is not None


def _remarks(results: Sequence[PodResult], *, by_cause: bool = False) -> Iterator[answers.Remark]:
    """Yields what runs in the shared pool, is outside an affinity, or is reused, and why.

    With `by_cause`, pods with the same remark share a line.
    """
    shared: dict[str, list[str]] = {}
    outside: dict[str, list[str]] = {}
    reused: dict[str, list[str]] = {}
    for result in results:
        pod = result.pod.partition("#")[0]
        about = "" if by_cause else f"{pod}, "
        alike: dict[str, list[str]] = {}
        for container, reason in result.shared.items():
            alike.setdefault(reason, []).append(container)
        for why, names in alike.items():
            shared.setdefault(f"{about}{_containers(names)}: {why}", []).append(pod)
        for name, cpus in result.reused_cpus.items():
            text = f"{about}init {_containers([name])}: {format_numbers('CPU', cpus)}"
            reused.setdefault(text, []).append(pod)
        for one in result.outside:
            what = f"{_RESOURCES.get(one.resource, one.resource)} on {nodes_text(one.nodes)}"
            outside.setdefault(f"{about}{_containers([one.container])}: {what}", []).append(pod)
    titled = (
        ("In the shared pool", shared),
        ("Outside the affinity", outside),
        ("Reused by later containers of the pod", reused),
    )
    for title, lines in titled:
        if lines:
            texts = (_with_count(*line, with_example=by_cause) for line in lines.items())
            yield answers.Remark(title, tuple(texts))


_RESOURCES = {"cpu": "exclusive CPUs"}


def _containers(names: Sequence[str]) -> str:
    return f"container{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _with_count(line: str, pods: Sequence[str], *, with_example: bool) -> str:
    if with_example:
        return f"{line} ({plural(len(pods), 'pod')}, such as {pods[0]})"
    return line if len(pods) == 1 else f"{line} ({plural(len(pods), 'pod')})"


def _limits(simulation: NodeSimulation) -> Iterator[answers.Remark]:
    """Yields what is not evaluated."""
    if simulation.not_evaluated:
        yield answers.Remark("Not evaluated", tuple(map(str, simulation.not_evaluated)))


def _pod_groups(results: Sequence[PodResult]) -> Iterator[tuple[str, list[PodResult]]]:
    """Yields the pods in order; groups replicas that were refused for the same reason."""

    def kind(result: PodResult) -> tuple[object, ...]:
        if result.refusal is None or result.explanation is None:
            return (result.pod,)
        return result.pod.partition("#")[0], result.refusal.message, result.explanation.summary

    for _, group in groupby(results, key=kind):
        pods = list(group)
        name = pods[0].pod
        if len(pods) > 1:
            name = f"{name} to {pods[-1].pod.partition('#')[2]}"
        yield name, pods


def _rows(results: Sequence[PodResult]) -> Iterator[answers.ContainerRow]:
    for name, (one, *_) in _pod_groups(results):
        if one.refusal:
            yield answers.ContainerRow(name, refusal=one.refusal.reason)
        for container, held in (one.containers or {}).items():
            numa = held.affinity.numa
            outside = [o for o in one.outside if o.container == container]
            yield answers.ContainerRow(
                pod=name,
                container=container,
                cpus=str(held.exclusive) or "shared pool",
                memory=", ".join(block_text(block, numa) for block in held.memory if block.size),
                devices=", ".join(_devices(held)),
                alignment="" if numa is None else nodes_text(numa),
                is_aligned=not outside,
            )


def _devices(container: messages.Container) -> Iterator[str]:
    for resource, ids in (container.devices or {}).items():
        more = f" and {len(ids) - _MAX_DEVICES} more" if len(ids) > _MAX_DEVICES else ""
        yield f"{resource.partition('/')[2]}: {' '.join(ids[:_MAX_DEVICES])}{more}"


def _owners(results: Sequence[PodResult], node: NodeView) -> Iterator[Owner]:
    """Yields the containers with exclusive CPUs or devices, then the reserved CPUs."""
    for one in results:
        for container, held in (one.containers or {}).items():
            cpus = held.exclusive - one.reused_cpus.get(container, CPUSet())
            if cpus or any((held.devices or {}).values()):
                yield Owner(f"{one.pod}/{container}", str(cpus))
    if node.reserved:
        yield Owner(RESERVED, str(node.reserved))


def _stock(node: NodeView, machine: MachineInfo) -> Stock:
    """Returns memory and devices, excluding the unused memory of nodes with no CPUs."""
    with_cpus = {one.node_id for one in machine.topology or () if one.cores}
    return Stock(
        tuple(
            DrawnMemory(
                one.node,
                one.type,
                one.total,
                one.reserved,
                one.allocated,
                str(one.group) if len(one.group) > 1 else "",
            )
            for one in node.memory
            if one.allocated or one.reserved or one.node in with_cpus
        ),
        tuple(
            DrawnDevice(
                one.resource,
                one.id,
                tuple(one.numa or ()),
                one.healthy,
                f"{one.pod}/{one.container}" if one.pod else "",
            )
            for one in node.devices
        ),
    )


def _stories(results: Sequence[PodResult], *, can_explain: bool) -> Iterator[answers.Story]:
    for name, (one, *_) in _pod_groups(results):
        why = one.explanation
        if why is not None:
            said = one.refusal and f"{one.refusal.reason}: {one.refusal.message}"
            steps = tuple(_step(step) for step in why.steps)
            yield answers.Story(
                name,
                one.refusal is None,
                said or "",
                why.summary,
                steps,
                (*why.advice, *_room_advice(one, can_explain=can_explain)),
                tuple(room_lines(one.removals)) if one.removals else (),
            )


def _room_advice(result: PodResult, *, can_explain: bool) -> Iterator[str]:
    scheduled = result.refusal and result.refusal.reason != UNSCHEDULABLE
    if can_explain and scheduled and result.removals is None:
        yield f"--explain {result.pod} shows which pods would have to go"


def _step(step: explaining.ExplanationStep) -> answers.StoryStep:
    place = ""
    if isinstance(step, explaining.ManagerHints):
        place = f"{step.manager}, {step.resource}: " if step.resource else f"{step.manager}: "
    elif isinstance(step, explaining.Allocation):
        who = f"container {step.container}" if step.container else "the pod as a whole"
        place = f"{step.manager}, {who}: "
    candidates = getattr(step, "candidates", explaining.Candidates())
    items = tuple(map(_item, candidates.sets))
    return answers.StoryStep(f"{place}{step.text}", items, candidates.more)


def _item(candidate: explaining.Candidate) -> answers.Item:
    text = (
        candidate.text if candidate.mark == "impossible" else f"{candidate.mark}: {candidate.text}"
    )
    return answers.Item(
        _MARKS[candidate.mark],
        f"{nodes_text(candidate.numa)}{explaining.alike_suffix(candidate)}",
        text,
    )
