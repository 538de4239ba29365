"""Plays a scenario on two sides in lockstep, until their answers differ.

The right side is the one under test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.conformance.differential.diff_options import TRIES
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.execution.implementation import (
    Implementation,
    ImplementationFailure,
    InProcess,
    ProcessBacked,
)
from numaproof.conformance.execution.player import Player
from numaproof.conformance.execution.run import Run, RunResult, Scenario, Target, picture
from numaproof.conformance.execution.truncation import replace_text, reported_finding, truncate
from numaproof.conformance.judging import known_defects, signatures
from numaproof.conformance.judging.baselines import Baseline, Baselines
from numaproof.conformance.judging.oracle import STATE_DIR, AnswerJudge, Oracle
from numaproof.protocol import codec, events, messages
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import make_folder, require_room

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case, Step
    from numaproof.conformance.judging.finding import Finding
    from numaproof.conformance.trees import MachineTree
    from numaproof.reference.choices import Choices


@dataclass(frozen=True)
class Pair:
    """Two implementations and the capabilities that they share.

    Attributes:
        left: the implementation, or recording, to compare with.
        right: the implementation under test.
        capabilities: what both sides can do, and the release that they behave as.
        level: how closely answers are compared.
        baselines: creates references that the right side may agree with where the kubelet
            contradicts its documentation; None to compare only with the left side.
        tell: the optional fields that starts request.
        tested_side: the side under test; the other side's answers are the expected ones.
    """

    left: Implementation
    right: Implementation
    capabilities: Capabilities
    level: messages.Level
    baselines: Callable[[Baseline], Implementation] | None = None
    tell: tuple[messages.Told, ...] = ()
    tested_side: Literal["left", "right"] = "right"

    @property
    def target(self) -> Target:
        """The right side, with only the claims that both sides make."""
        can = self.capabilities
        return Target(self.right, can.hello, can.kubernetes, self.level)


@dataclass(frozen=True)
class LockstepResult(RunResult):
    """How a scenario ended.

    The outcome is ``pass`` if all answers agree, ``fail`` if one differs, ``expected failure`` if a
    side broke because of a named defect of the release, ``unsupported``, or the way in which a side
    broke.

    Attributes:
        calls: the number of calls; the last one got different answers, if any did.
        steps: the calls, for reports.
        pictures: the machine on both sides after the last call.
        chance: the operation that the right side answers nondeterministically, if this ended the
            comparison; else empty.
        baseline_divergence: whether the right side follows the kubelet or its documentation, if
            both are accepted and they differ.
        tested_side: the side under test.
    """

    calls: int = 0
    steps: tuple[events.ReportedCall, ...] = ()
    pictures: tuple[events.Picture, ...] = ()
    chance: str = ""
    baseline_divergence: events.BaselineDivergence | None = None
    tested_side: Literal["left", "right"] = "right"

    @property
    def signature(self) -> str:
        """The signature of the failure; empty if there is none."""
        found = self.finding
        if found and self.tested_side == "left":
            # In signatures, the tested side's answer comes first.
            found = found.with_sides_swapped()
        return signatures.signature(replace(self, finding=found), self.operation)

    def reported_finding(self, before: str = "") -> events.ReportedFinding | None:
        """The finding for reports, with a prefixed headline; None if no answer was wrong."""
        return reported_finding(self.finding, f"{before}{self.operation}: ")

    @property
    def operation(self) -> str:
        """The operation of the last call."""
        return self.steps[-1].operation if self.steps else ""


class _LeftSideFailure(Exception):  # noqa: N818 - distinguishes the sides' failures
    def __init__(self, failure: ImplementationFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _LeftSide:
    """Wraps the left side, to distinguish its failures from the right side's."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        try:
            return self._implementation.call(operation, args)
        except ImplementationFailure as failure:
            raise _LeftSideFailure(failure) from failure

    def check_alive(self) -> None:
        """Checks that the program can handle another call."""
        try:
            if isinstance(self._implementation, ProcessBacked):
                self._implementation.check_alive()
        except ImplementationFailure as failure:
            raise _LeftSideFailure(failure) from failure

    def prefer(self, choices: Choices) -> None:
        """Sets the choices that the reference makes; has no effect on other implementations."""
        if isinstance(self._implementation, InProcess):
            self._implementation.prefer(choices)


class _Differs(Exception):  # noqa: N818 - ends a scenario at its first difference
    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass
class _FirstDifference:
    """A judge that ends the scenario at the first difference."""

    judge: Oracle | Baselines

    @property
    def answer(self) -> messages.Answer | None:
        return self.judge.answer

    def disagreement(self, operation: str, args: messages.Args, answer: messages.Answer) -> None:
        if found := self.judge.disagreement(operation, args, answer):
            raise _Differs(replace(found, source="other side"))

    def alter(self, change: Callable[[Path], object]) -> None:
        self.judge.alter(change)


class ComparedPlayer(Player):
    """Plays cases without checking invariants.

    Requests the state at the end and before steps that discard it.
    """

    checks_invariants = False

    def play(self) -> None:
        super().play()
        self._ask()

    def step(self, step: Step) -> None:
        if step.verb in _ENDS:
            self._ask()
        super().step(step)

    def _ask(self) -> None:
        session = self.session
        asked = not session.calls or session.calls[-1].operation == "state"
        if session.start_answer is not None and session.capabilities.has("state") and not asked:
            session.call("state", messages.NoArgs())


_ENDS = frozenset({"start", "tamper"})
"""Steps that replace the running node and thus lose its state."""

_numbers = count()


def play(pair: Pair, scenario: Scenario, scratch: Path) -> LockstepResult:
    """Plays a scenario once on both sides.

    Ignores the case's expectations and skips impossible steps.

    Args:
        pair: the two sides.
        scenario: the scenario and its machine.
        scratch: the parent of state directories; empty afterwards.

    Raises:
        CaseError: the case can't be played as written.
        ScratchError: there is no space for temporary files.
    """
    # A program may still be writing to the last scenario's folder, and so keep it from going.
    folder = scratch / f"lockstep-{next(_numbers)}"
    try:
        result = _LockstepRun(pair, scenario, folder).compare()
        # On a full disk, both sides may fail alike.
        require_room(folder)
        return result
    finally:
        remove_tree(folder)


class ComparedRun(Run):
    """A run that only compares answers."""

    player_type = ComparedPlayer


class _LockstepRun(ComparedRun):
    def __init__(self, pair: Pair, scenario: Scenario, folder: Path) -> None:
        if isinstance(pair.left, ProcessBacked):
            pair.left.begin()
        self._pair = pair
        self._left = _LeftSide(pair.left)
        self._left_state = folder / "left"
        make_folder(self._left_state)
        case = _without_expectations(scenario.case, pair.tell)
        super().__init__(pair.target, case, scenario.machine, scenario.tree, folder)

    def _oracle(self) -> AnswerJudge:
        pair, make, seen = self._pair, self._pair.baselines, self._pair.capabilities.discovers
        self._comparison: Oracle | Baselines = (
            Oracle(self._left, self._left_state, pair.level, seen)
            if make is None
            else Baselines(
                lambda baseline: _LeftSide(make(baseline)),
                self._left_state,
                pair.level,
                discovers=seen,
            )
        )
        return _FirstDifference(self._comparison)

    def _root(self, tree: MachineTree | None) -> Callable[[], str | Path] | None:
        return tree.directory if tree else None  # either side may be a program

    def compare(self) -> LockstepResult:
        """Plays the scenario on both sides."""
        ended = self.judge(self._play_both)
        if ended.outcome == "pass":
            ended = self.final_result(ended)
        result = LockstepResult(**vars(ended))
        if ended.outcome == "unsupported":
            return result
        calls, judge = self.player.session.calls, self._comparison
        divergence = judge.baseline_divergence() if isinstance(judge, Baselines) else None
        result = replace(result, calls=len(calls), baseline_divergence=divergence)
        if ended.outcome == "pass":
            return result
        result = replace(result, steps=self.steps())
        if not any(call.problems for call in calls):
            return result
        return replace(result, pictures=self.pictures(), tested_side=self._pair.tested_side)

    def _play_both(self) -> None:
        self.player.play()
        self._left.check_alive()

    def _result_of(self, action: Callable[[], None]) -> RunResult:
        try:
            action()
        except NotSupportedError as missing:
            return RunResult("unsupported", f"one side does not have {missing}")
        except _LeftSideFailure as left:
            ended, whose = RunResult.of_failure(left.failure), "the left side: "
            return replace(ended, message=whose + ended.message, words=whose + ended.words)
        except ImplementationFailure as failure:
            return RunResult.of_failure(failure)
        except _Differs as differs:
            left_is_tested = self._pair.tested_side == "left"
            found = differs.finding.with_sides_swapped() if left_is_tested else differs.finding
            last = self.player.session.calls[-1]
            last.problems[:] = [found]
            outcome: events.Outcome = "fault" if self._faults() else "fail"
            return RunResult(outcome, f"{last.operation}: {found}", finding=found)
        return RunResult("pass")

    def _verdict(self, result: RunResult) -> RunResult:
        """Attributes the failure of a side to a named defect of the release, if one explains it.

        Does so only at level kubelet: only there do both sides claim to be kubelets of the release.
        """
        if self._pair.level != "kubelet":
            return result
        session, defect = self.player.session, None
        known = known_defects.known_defects(session.kubernetes)
        if result.outcome == "time-out":
            call = session.calls[-1]
            asked = known_defects.BrokenCall(
                call.operation, call.args, session.config, session.machine
            )
            defect = known_defects.defect_of_hang(asked, known)
        elif result.outcome == "fault" and len(faults := self._faults()) == 1:
            defect = known_defects.defect_of_panic(faults[0], known)
        return replace(result, outcome="expected failure", defect=defect) if defect else result

    def _faults(self) -> list[messages.Fault]:
        """The faults among both sides' last answers."""
        last = (self.player.session.calls[-1].answer, self._comparison.answer)
        return [answer for answer in last if isinstance(answer, messages.Fault)]

    def steps(self) -> tuple[events.ReportedCall, ...]:
        """All calls, with the left side's answer for the last one."""
        shown, right = super().steps(), self._comparison.answer
        if not shown or right is None:
            return shown
        plain = replace_text(codec.to_plain(right), str(self._left_state), STATE_DIR)
        return (*shown[:-1], msgspec.structs.replace(shown[-1], expected=truncate(plain)))

    def pictures(self) -> tuple[events.Picture, ...]:
        """The state of both sides after the call with different answers, if they can report it."""
        session = self.player.session
        if session.start_answer is None or not self._pair.capabilities.has("state"):
            return ()
        drawn = []
        for title, side in (
            ("expected", self._comparison.reference),
            ("got", session.implementation),
        ):
            try:
                state = side.call("state", messages.NoArgs())
            except (ImplementationFailure, _LeftSideFailure):
                continue
            if isinstance(state, messages.State):
                drawn.append(picture(title, session.view(self.player.facts, state)))
        return tuple(drawn)


def _without_expectations(case: Case, tell: tuple[messages.Told, ...]) -> Case:
    steps = (msgspec.structs.replace(step, expect="anything") for step in case.steps)
    return msgspec.structs.replace(case, steps=tuple(steps), tell=tell)


_ENOUGH = 8
"""The number of runs with the same difference that rule out chance."""


def examine(pair: Pair, scenario: Scenario, scratch: Path, tries: int = TRIES) -> LockstepResult:
    """Plays a scenario repeatedly to distinguish chance from a difference.

    A kubelet iterates over maps and sets in arbitrary order, so only its deterministic answers are
    compared. If the sides agree throughout any run, they differed only by chance. Otherwise, only
    the runs that agreed the longest are considered. If the right side's answers differ between
    these runs, the rest of the scenario can't be compared (`LockstepResult.chance`).

    Args:
        pair: the two sides.
        scenario: the scenario and its machine.
        scratch: the parent of state directories.
        tries: the maximum number of runs. If a side breaks, there are no more runs.

    Raises:
        CaseError: the case can't be played as written.
    """
    runs: list[LockstepResult] = []
    for _ in range(tries):
        run = play(pair, scenario, scratch)
        if run.outcome != "fail":
            return run
        runs.append(run)
        longest = _longest(runs)
        if len(longest) >= min(_ENOUGH, tries) and not _by_chance(longest):
            break
    longest = _longest(runs)
    last = longest[0]
    if _by_chance(longest) or (len(longest) < min(_ENOUGH, tries) and _by_chance(runs)):
        return replace(last, outcome="pass", chance=last.operation)
    return last


def _longest(runs: list[LockstepResult]) -> list[LockstepResult]:
    most = max(run.calls for run in runs)
    return [run for run in runs if run.calls == most]


def _by_chance(runs: list[LockstepResult]) -> bool:
    """Whether runs with the same calls ended with different differences.

    The rest of the answers may vary, for example in the order of a set.
    """
    return len({run.message for run in runs}) > 1
