"""Records a healthy reference's answers, so bugs are only judged on runs whose answers differ.

A run ends the same way as long as its calls get the same answers. The calls to a healthy
reference are therefore replayed against each faulty one, and only if an answer differs is the
run repeated with invariants and expectations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from numaproof.conformance.execution.run import Run
from numaproof.conformance.execution.session import tamper
from numaproof.reference.implementation import Reference
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import make_folder

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case, TamperStep
    from numaproof.conformance.execution.implementation import InProcess
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.trees import MachineTree
    from numaproof.protocol import messages
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.choices import Choices
    from numaproof.workdir.state_directory import StateDirectory
    from quality.seeding import Bug


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its answer."""

    operation: str
    args: messages.Args
    answer: messages.Answer


class Recorder:
    """An implementation that records its calls and answers."""

    def __init__(self, implementation: InProcess) -> None:
        self._implementation = implementation
        self.moves: list[Exchange | TamperStep] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Forwards the call and records its answer."""
        answer = self._implementation.call(operation, args)
        self.moves.append(Exchange(operation, args, answer))
        return answer

    def prefer(self, choices: Choices) -> None:
        """Forwards the choices."""
        self._implementation.prefer(choices)

    def close(self) -> None:
        """Closes the implementation."""
        self._implementation.close()


@dataclass(frozen=True)
class HealthyRun:
    """The calls made to a healthy reference, and the manual changes to its checkpoints.

    Attributes:
        moves: calls and changes, in order.
        state_dir: the state directory that the calls name, emptied before each replay.
        good: whether the run passed. Failures of a healthy reference are not compared.
        exact: whether the moves are complete.
    """

    moves: tuple[Exchange | TamperStep, ...]
    state_dir: StateDirectory
    good: bool
    exact: bool = True

    def differs(self, bug: Bug) -> bool:
        """Returns whether a reference with the bug answers any of the calls differently."""
        if not self.exact:
            return True
        remove_tree(self.state_dir.path)
        make_folder(self.state_dir.path)
        reference = Reference()
        with bug.inject():
            for move in self.moves:
                if isinstance(move, Exchange):
                    if reference.call(move.operation, move.args) != move.answer:
                        return True
                else:
                    tamper(self.state_dir, move.file, move.how, move.text)
        return False


def run_scenario(target: Target, recorder: Recorder, case: Case, folder: Path) -> HealthyRun:
    """Runs a generated scenario, whose steps don't depend on answers."""
    run = _run(target, recorder, case, case.machine, None, folder)
    good = True
    for step in case.steps:
        good = good and run.judge(partial(run.player.step, step)).good
        if step.tamper is not None:
            recorder.moves.append(step.tamper)
    return _healthy_run(recorder, run, good=good)


def run_case(
    target: Target,
    recorder: Recorder,
    case: Case,
    machine: MachineInfo,
    tree: MachineTree | None,
    folder: Path,
) -> HealthyRun:
    """Runs a case on a machine."""
    run = _run(target, recorder, case, machine, tree, folder)
    good = run.play().good
    tampers = any(step.tamper is not None for step in case.steps)
    return _healthy_run(recorder, run, good=good, exact=not tampers)


def _run(
    target: Target,
    recorder: Recorder,
    case: Case,
    machine: MachineInfo | None,
    tree: MachineTree | None,
    folder: Path,
) -> Run:
    assert machine is not None
    recorder.moves = []
    return Run(replace(target, implementation=recorder, oracle=None), case, machine, tree, folder)


def _healthy_run(recorder: Recorder, run: Run, *, good: bool, exact: bool = True) -> HealthyRun:
    return HealthyRun(tuple(recorder.moves), run.player.session.state_dir, good, exact)
