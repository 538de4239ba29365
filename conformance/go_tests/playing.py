"""Plays a case on the reference, which yields the calls and the machine for a test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.schema import Case, Expected, Step
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET, Baseline
from numaproof.conformance.promotion import accepted_or_refused
from numaproof.protocol import messages
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class PlayedCall:
    """A call made for a step.

    Attributes:
        number: the number of the step, from 1; 0 for the start before the first step.
        step: the step, with its expressions evaluated.
        args: the call's arguments; None if the step edits a file.
        answer: the documented answer.
        kubelet_answer: the answer of the release; None if it didn't get this far.
        expected: the expected answer; for a step that accepts any answer, whether it is refused.
    """

    number: int
    step: Step | None
    args: messages.Args | None
    answer: messages.Answer | None
    kubelet_answer: messages.Answer | None
    expected: Expected


def play(case: Case, machine: MachineInfo, kubernetes: str) -> tuple[PlayedCall, ...]:
    """Plays a case as documented and as the release answers it.

    Raises:
        CaseError: the case can't be played to the end.
    """
    kubelet = {
        (number, position): answer
        for number, position, _, _, answer in _calls(case, machine, kubernetes, KUBELET)
    }
    made = []
    for number, position, step, args, answer in _calls(case, machine, kubernetes, DOCUMENTED):
        given = step.expect if step else Expected()
        if not isinstance(given, Expected):
            expected = accepted_or_refused(answer, {}) if answer else Expected()
        elif position and isinstance(args, messages.AdmitArgs):
            name = manifests.pod_name(args.pod["metadata"]["uid"])
            expected = Expected(refused=given.readmission.get(name))
        else:
            expected = given
        made.append(
            PlayedCall(number, step, args, answer, kubelet.get((number, position)), expected)
        )
    return tuple(made)


_Made = tuple[int, int, Step | None, messages.Args | None, messages.Answer | None]


def _calls(
    case: Case, machine: MachineInfo, kubernetes: str, baseline: Baseline
) -> Iterator[_Made]:
    """Yields the calls by step and position in the step, with the step, arguments and answer."""
    with scratch_folder() as scratch:
        run = Run(reference_target(kubernetes, baseline), case, machine, None, scratch / "case")
        session = run.player.session
        result = run.judge(run.player.begin)
        for number in range(len(case.steps) + 1):
            before = 0 if number == 0 else len(session.calls)
            step = None
            if number:
                step = run.player.expand(case.steps[number - 1]).on(kubernetes)
                result = run.judge(partial(run.player.play_step, number - 1))
            if not result.good and baseline is DOCUMENTED:
                raise CaseError(case.id, number, f"the reference fails it: {result.message}")
            made = session.calls[before:]
            # Other calls without arguments are looks at the state for the invariants.
            calls = [one for one in made if not isinstance(one.args, messages.NoArgs)]
            if step and (step.state or step.reconcile):
                calls = made[:1]
            yield from (
                (number, position, step, one.args, one.answer) for position, one in enumerate(calls)
            )
            if step and step.tamper:
                yield number, 0, step, None, None


def affinities(answer: messages.Answer | None) -> Mapping[str, messages.Hint]:
    """Returns the hints of an admitted pod's containers, by name."""
    if not isinstance(answer, messages.Admitted):
        return {}
    return {name: one.affinity for name, one in answer.containers.items()}


def config_of(calls: Sequence[PlayedCall]) -> dict[str, Any]:
    """Returns the configuration of the first start; empty if there is none."""
    return next((one.args.config for one in calls if isinstance(one.args, messages.StartArgs)), {})
