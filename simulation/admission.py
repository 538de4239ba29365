"""Whether pods would be admitted on a node, one after the other, and what they would get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.node import Reference
from numaproof.simulation.pods import Asked  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from collections.abc import Iterable


class CannotAnswerError(Exception):
    """The reference does not have what was asked for; the text says what."""


class Question(msgspec.Struct, frozen=True):
    """A node: its machine, its configuration, the release, and whether defects are left out."""

    machine: MachineInfo
    config: messages.KubeletConfiguration
    kubernetes: str
    documented: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """What became of one pod: its containers at its admission, or the refusal."""

    pod: str
    containers: messages.Containers | None = None
    refusal: messages.AdmissionRefused | None = None


class Simulation(msgspec.Struct, frozen=True):
    """The start, the pods in order, and the CPUs shared at the end; no pods after a refusal."""

    start: messages.Started | messages.StartRefused
    pods: tuple[Verdict, ...] = ()
    shared: str = ""

    @property
    def admitted(self) -> bool:
        """Whether the kubelet starts and admits every pod."""
        started = isinstance(self.start, messages.Started)
        return started and all(one.refusal is None for one in self.pods)


def simulate(question: Question, pods: Iterable[Asked], state_dir: str) -> Simulation:
    """Admits the pods in order; `state_dir` is an empty directory for the checkpoints.

    Raises:
        CannotAnswerError: the reference does not have what the configuration asks for.
    """
    reference, start = begin(question, state_dir)
    if isinstance(start, messages.StartRefused):
        return Simulation(start)
    verdicts = tuple(_admit(reference, pod) for pod in pods)
    state = _answer(reference, "state", messages.NoArgs())
    assert isinstance(state, messages.State)
    return Simulation(start, verdicts, str(state.shared))


def begin(
    question: Question, state_dir: str
) -> tuple[Reference, messages.Started | messages.StartRefused]:
    """A node that has been asked to start with the checkpoints in `state_dir`.

    Raises:
        CannotAnswerError: the reference does not have what the configuration asks for.
    """
    reference = Reference(documented=question.documented)
    args = messages.StartArgs(
        config=question.config,
        state_dir=state_dir,
        kubernetes=question.kubernetes,
        machine=question.machine,
    )
    start = _answer(reference, "start", args)
    assert isinstance(start, messages.Started | messages.StartRefused)
    return reference, start


def _admit(reference: Reference, pod: Asked) -> Verdict:
    answer = _answer(reference, "admit", messages.AdmitArgs(pod.manifest))
    if isinstance(answer, messages.AdmissionRefused):
        return Verdict(pod.name, refusal=answer)
    assert isinstance(answer, messages.Admitted)
    return Verdict(pod.name, containers=answer.containers)


def _answer(reference: Reference, operation: str, args: messages.Args) -> messages.Answer:
    answer = reference.call(operation, args)
    if isinstance(answer, messages.Unsupported):
        raise CannotAnswerError(f"not simulated yet: {answer.what}")
    if isinstance(answer, messages.Fault):
        raise CannotAnswerError(f"{operation}: {answer.message}")
    return answer
