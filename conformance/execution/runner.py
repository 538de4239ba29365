"""Selects cases and machines, and plays a case on a machine."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import expressions, releases, writing
from numaproof.conformance.cases.loading import CaseError, applies
from numaproof.conformance.cases.schema import Case, Expected, Machines, StartStep, Step
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.execution.machines import AnyMachine, GivenMachine, ProfileMachine
from numaproof.conformance.execution.player import playing, starts_implicitly
from numaproof.conformance.execution.run import Run, Target, reference_target
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.conformance.judging.baselines import DOCUMENTED
from numaproof.protocol import events
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.messages import Level


@dataclass(frozen=True)
class SelectedCase:
    """A case on a machine.

    Attributes:
        case: the case.
        machine: the machine.
        only_invariants: whether the case is above the claimed level, so that its steps accept any
            answer and only the invariants are checked.
    """

    case: Case
    machine: AnyMachine
    only_invariants: bool = False

    @classmethod
    def on(cls, machine: AnyMachine, case: Case, level: Level = LEVELS[-1]) -> SelectedCase:
        """Pairs a case with a machine, for a target that claims `level`.

        Marks the case if it starts from the machine's tree.
        """
        if isinstance(machine, ProfileMachine) and machines.starts_from_tree(machine, case):
            case = msgspec.structs.replace(case, tree=True)
        above = not applies(case.level, level)
        return cls(_accepting_any_answer(case) if above else case, machine, above)

    @property
    def info(self) -> MachineInfo:
        """The machine; an empty one if discovery fails.

        If the case reads the machine's tree, its cores are those that the kernel lists, even if the
        kubelet finds others.
        """
        machine = self.machine
        info = machine.info
        if isinstance(machine, ProfileMachine) and machines.discovers(self.case):
            info = machine.kernel_info if machine.repeats_core_ids else info
        return info or MachineInfo()


def select(
    cases: Iterable[Case], catalogue: Sequence[ProfileMachine], target: Target
) -> list[SelectedCase]:
    """The cases, each on every machine that it applies to.

    Cases for other releases are left out. Cases above the target's level accept any answer, except
    those of level ``kubelet``, which are left out: only its source defines what they ask for. A
    case with its own machine runs only on that machine.
    """
    return [
        SelectedCase.on(machine, case, target.level)
        for case in cases
        if releases.includes(case.kubernetes, target.kubernetes)
        and (applies(case.level, target.level) or _is_playable_below(case, target.kubernetes))
        for machine in _machines(case, catalogue)
    ]


def _is_playable_below(case: Case, kubernetes: str) -> bool:
    """Whether programs that claim a lower level can be asked for what the case asks for.

    They may accept a configuration that a kubelet refuses. Nothing is known about a node that runs
    with it.
    """
    return case.level != LEVELS[-1] and not any(
        step.start is not None
        and isinstance(expected := step.on(kubernetes).expect, Expected)
        and expected.refused
        for step in case.steps
    )


def _accepting_any_answer(case: Case) -> Case:
    first = (Step(start=StartStep()),) if starts_implicitly(case) else ()
    steps = (*first, *case.steps)
    open_steps = tuple(msgspec.structs.replace(step, expect="anything") for step in steps)
    return msgspec.structs.replace(case, steps=open_steps, defect=None)


def _machines(case: Case, catalogue: Sequence[ProfileMachine]) -> Sequence[AnyMachine]:
    if case.machine is not None:
        return [GivenMachine(case.machine)]
    return machines.select(catalogue, case)


@dataclass(frozen=True)
class PlayedCase:
    """A case that was played on a machine, with its run and event."""

    run: Run
    event: events.CaseFinished


def run_case(
    selected_case: SelectedCase, harness_run: HarnessRun, scratch: Path, *, every_call: bool = False
) -> events.CaseFinished:
    """Plays a case on a machine and returns its event.

    For the arguments and errors, see `play_case`.
    """
    return play_case(selected_case, harness_run, scratch, every_call=every_call).event


def play_case(
    selected_case: SelectedCase, harness_run: HarnessRun, scratch: Path, *, every_call: bool = False
) -> PlayedCase:
    """Plays a case on a machine.

    Args:
        selected_case: the case and the machine.
        harness_run: the run, with its target.
        scratch: an empty directory for state directories.
        every_call: whether to include the calls of passed runs in the event.

    Raises:
        CaseError: the case can't be played as written.
    """
    began = harness_run.elapsed_seconds()
    target = harness_run.target
    if selected_case.only_invariants:
        target = replace(target, level=LEVELS[0])
    run = Run(
        target,
        selected_case.case,
        selected_case.info,
        selected_case.machine.tree,
        scratch,
    )
    result = run.play()
    session = run.player.session
    shown = result.outcome not in ("pass", "unsupported")
    now = harness_run.elapsed_seconds()
    finished = events.CaseFinished(
        at=now,
        case=selected_case.case.id,
        title=selected_case.case.title,
        machine=selected_case.machine.name,
        outcome=result.outcome,
        seconds=now - began,
        requirements=selected_case.case.requirements,
        message=result.message,
        steps=run.steps() if shown or every_call else (),
        pictures=run.pictures() if shown else (),
        stderr=result.stderr,
        defect=result.defect,
        reproduce=reproduce(selected_case, harness_run),
        signature=run.signature(result),
        needs=session.needed_claims,
        missing_claim=session.missing_claim,
        declined_claims=session.declined_claims,
        agreed_level=session.agreed_level
        if target.oracle and not selected_case.only_invariants
        else None,
        baseline_divergence=run.baseline_divergence(result),
        undiscovered=run.undiscovered(),
        unaffected=run.unaffected(result),
        violated_requirements=run.violated_requirements(result),
        finding=reported_finding(result.finding),
        case_text=writing.text(selected_case.case) if result.outcome not in events.GOOD else "",
        only_invariants=selected_case.only_invariants,
    )
    return PlayedCase(run, finished)


def reproduce(selected_case: SelectedCase, harness_run: HarnessRun, *options: str) -> str:
    """The command that repeats this run, with further options."""
    machine = selected_case.machine
    if isinstance(machine, GivenMachine):
        return harness_run.replay(selected_case.case.id, *options)
    name = machine.requested_name or machine.name
    return harness_run.replay(selected_case.case.id, "--machine", name, *options)


def fill_in(case: Case, machine: AnyMachine, scratch: Path) -> Case:
    """Replaces the expressions in a case with their values on a machine.

    ``allocatable``, ``reserved`` and ``shared`` depend on earlier answers, so the case is played on
    the reference, as a kubelet of the newest release that the case covers.

    Args:
        case: the case, which must apply to the machine.
        machine: the machine.
        scratch: an empty or missing directory for state directories.

    Raises:
        CaseError: the case can't be played as written.
    """
    known = [one for one in RELEASES if releases.includes(case.kubernetes, one)]
    if not known:
        message = (
            f"kubernetes: {case.kubernetes!r} matches no release (expected any of"
            f" {RELEASES[0]} to {RELEASES[-1]})"
        )
        raise CaseError(case.id, 0, message)
    target = reference_target(known[-1], DOCUMENTED)
    run = Run(target, case, machine.info or MachineInfo(), machine.tree, scratch)
    player = run.player
    with _step_errors_reported(case, 0):
        names = player.names()
        config = expressions.expand(case.config, names)
        devices = expressions.expand(msgspec.to_builtins(case.devices), names)
        preferred = expressions.expand(case.preferred, names)
        player.begin()
    steps: list[Step] = []
    for number, step in enumerate(case.steps, 1):
        with _step_errors_reported(case, number):
            steps.append(player.expand(step))
            player.step(steps[-1])
    made: dict[str, Any] = {
        **msgspec.to_builtins(case),
        "machines": Machines() if case.machine else Machines(names=(machine.name,)),
        "config": config,
        "devices": devices,
        "preferred": preferred,
        "let": {},
        "steps": steps,
        "machine": case.machine,
    }
    return msgspec.convert(made, type(case), from_attributes=True)


@contextmanager
def _step_errors_reported(case: Case, step: int) -> Iterator[None]:
    """Reports steps that are badly written or that the reference can't play."""
    with playing(case.id, step):
        try:
            yield
        except NotSupportedError as missing:
            raise CaseError(case.id, step, f"the reference does not have {missing}") from None
        except ImplementationFailure as failure:
            raise CaseError(case.id, step, str(failure)) from None
