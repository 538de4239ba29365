"""Simulates a node: which pods are admitted, what they get, and where a defect decided that."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from numaproof.protocol import messages
from numaproof.simulation import defects
from numaproof.simulation.admission import (
    CannotAnswerError,
    NodeView,
    Simulation,
    admit,
    admit_all,
    begin,
    node_of,
)
from numaproof.simulation.defects import NamedDefect
from numaproof.simulation.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.simulation.admission import PodResult, Question
    from numaproof.simulation.pods import DescribedPod


Answer = (
    messages.Started
    | messages.StartRefused
    | messages.AdmissionRefused
    | messages.Container
    | messages.Containers
    | Explanation
    | NodeView
)


class DefectWarning(msgspec.Struct, frozen=True):
    """An answer of the kubelet that differs from the documented one because of named defects.

    Attributes:
        defects: the defects that took part.
        part: what differs.
        pod, container: the pod or container concerned, if any.
        kubelet, documented: the two answers; None for a container that one side does not have.
        follows: whether the documented rules give the same answer on this node, and only the state
            in which an earlier answer left the node makes the difference.
    """

    defects: tuple[NamedDefect, ...]
    part: Part
    pod: str | None
    container: str | None
    kubelet: Answer | None
    documented: Answer | None
    follows: bool = False


Part = Literal["start", "verdict", "container", "explanation", "node"]
"""The start, whether a pod is admitted, what a container gets, why, or the node in the end."""


class _Subject(NamedTuple):
    """What an answer is about."""

    part: Part
    pod: str | None = None
    container: str | None = None


def warnings(
    question: Question,
    pods: Sequence[DescribedPod],
    found: Simulation,
    folder: Path,
    *,
    explain_all: bool,
) -> tuple[DefectWarning, ...]:
    """The warnings about the simulation `found`, in the order of its answers.

    Args:
        question: the node, whose reference has the kubelet's defects.
        pods: those that were simulated.
        found: the simulation.
        folder: an empty directory for the state directories of further simulations.
        explain_all: whether admissions were explained.

    Raises:
        CannotAnswerError: the reference does not support what is asked for.
    """
    releases = (question.kubernetes,)
    every = defects.of_releases(releases)
    number = count()

    def play(without: frozenset[str], asked: Sequence[DescribedPod]) -> Simulation:
        state_dir = folder / str(next(number))
        state_dir.mkdir()
        lacking = msgspec.structs.replace(question, exceptions=without)
        return admit_all(lacking, asked, str(state_dir), explain_all=explain_all)

    documents = play(every, pods)
    kubelet, documented = _answers(found), _answers(documents)
    subjects = _telling(defects.differing(kubelet, documented))
    if not subjects:
        return ()
    own = _own(question, every, pods, folder)
    # The first difference follows from nothing that is shown.
    causes = [one for one in subjects if one.pod is None or one in own or one is subjects[0]]
    # A simulation need not go on after the last pod that it is about.
    names = [pod.name for pod in pods]
    to_end = any(one.part == "node" for one in causes)
    last = max((names.index(one.pod) + 1 for one in causes if one.pod), default=0)
    asked = pods if to_end else pods[:last]
    why = defects.attributed(
        causes, kubelet, releases, lambda without: _answers(play(without, asked))
    )
    shown = []
    earlier: dict[NamedDefect, None] = {}
    for subject in subjects:
        at_work = why.get(subject) or tuple(earlier)
        earlier |= dict.fromkeys(at_work)
        shown.append(
            DefectWarning(
                at_work,
                *subject,
                kubelet=_answer(found, subject),
                documented=_answer(documents, subject),
                follows=subject not in why,
            )
        )
    return tuple(shown)


def _answers(found: Simulation) -> dict[_Subject, object]:
    """What is compared of a simulation, by what it is about."""
    answers: dict[_Subject, object] = {_Subject("start"): found.start}
    for one in found.pods:
        answers |= _about(one)
    answers[_Subject("node")] = found.node
    return answers


def _about(one: PodResult) -> dict[_Subject, object]:
    containers = (one.containers or {}).items()
    return {
        _Subject("verdict", one.pod): one.refusal or "admitted",
        **{_Subject("container", one.pod, name): held for name, held in containers},
        _Subject("explanation", one.pod): one.explanation,
    }


def _telling(differing: list[_Subject]) -> list[_Subject]:
    """The differences that no other one implies: without a start, for example, all pods differ."""
    verdicts = {one.pod for one in differing if one.part == "verdict"}
    held = {one.pod for one in differing if one.part == "container"}
    implied = {"start": {}, "verdict": {}, "container": verdicts, "explanation": verdicts | held}
    telling = [one for one in differing if one.pod not in implied.get(one.part, {one.pod})]
    return telling or differing


def _answer(found: Simulation, subject: _Subject) -> Answer | None:
    """A simulation's answer; of a pod that is admitted, what its containers get."""
    if subject.part == "start":
        return found.start
    if subject.part == "node":
        return found.node
    one = next((one for one in found.pods if one.pod == subject.pod), None)
    if one is None:
        return None
    if subject.part == "explanation":
        return one.explanation
    if subject.part == "verdict":
        return one.refusal or one.containers
    assert subject.container is not None
    return (one.containers or {}).get(subject.container)


def _own(
    question: Question, every: frozenset[str], pods: Sequence[DescribedPod], folder: Path
) -> set[_Subject]:
    """What the documented rules answer differently about pods on the very node of the kubelet."""
    answering = []
    for name, without in (("kubelet", frozenset[str]()), ("documented", every)):
        (folder / name).mkdir()
        lacking = msgspec.structs.replace(question, exceptions=without)
        reference, start = begin(lacking, str(folder / name))
        if isinstance(start, messages.StartRefused):
            return set()
        answering.append(reference)
    kubelet, documented = answering
    own: set[_Subject] = set()
    for pod in pods:
        node_of(documented).adopt(node_of(kubelet))
        mine = _about(admit(kubelet, pod, [], explain_all=True))
        try:
            others = _about(admit(documented, pod, [], explain_all=True))
        except CannotAnswerError:
            others = {}
        own |= set(defects.differing(mine, others))
    return own


class CheckedSimulation(Simulation, frozen=True, omit_defaults=True):
    """A simulation with what its reader has to know besides.

    Attributes:
        warnings: one for each answer that named defects of the kubelet shaped.
        notes: what in the files was ignored or skipped, a sentence each.
    """

    warnings: tuple[DefectWarning, ...] = ()
    notes: tuple[str, ...] = ()


def simulate(
    question: Question,
    pods: Sequence[DescribedPod],
    folder: Path,
    *,
    notes: Sequence[str] = (),
    explain_all: bool = False,
) -> CheckedSimulation:
    """Admits the pods in order; `folder` is an empty directory for the checkpoints.

    Refusals are explained; with `explain_all`, admissions too. The notes are handed on.

    Raises:
        CannotAnswerError: the reference does not support what the configuration asks for.
    """
    own, others = folder / "node", folder / "others"
    for each in (own, others):
        each.mkdir()
    found = admit_all(question, pods, str(own), explain_all=explain_all)
    told: tuple[DefectWarning, ...] = ()
    if not question.documented:
        told = warnings(question, pods, found, others, explain_all=explain_all)
    return CheckedSimulation(**msgspec.structs.asdict(found), warnings=told, notes=tuple(notes))
