"""One scenario on two sides in lockstep: every call goes to both, until their answers differ.

The right side is the one under test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case, Step
    from numaproof.conformance.judging.finding import Finding
    from numaproof.conformance.trees import MachineTree


@dataclass(frozen=True)
class Pair:
    """Two implementations and what is asked of them.

    Attributes:
        left: what it is compared with: an implementation, or a recording of one.
        right: what is under test.
        capabilities: what both can do, and the release that they behave as.
        level: how much of the answers is compared.
        baselines: makes references that the right side may agree with where kubelets contradict
            their documents; None to compare it with the left side alone.
        tell: what starts ask both to tell.
        tested_side: the side that is under test; what the other one says is what is expected.
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
        """The right side, with no more claims than both have."""
        can = self.capabilities
        return Target(self.right, can.hello, can.kubernetes, self.level)


@dataclass(frozen=True)
class LockstepResult(RunResult):
    """How a scenario ended.

    The outcome is ``pass`` where all answers agree; ``unsupported``; ``fail`` where one differs;
    ``expected failure`` where one of the sides broke by a named defect of the release; else how it
    broke.

    Attributes:
        calls: that were made, the last of them the one that differs.
        steps: the same calls as reports show them.
        pictures: the machine on either side after the last call.
        chance: the operation that the right side answers differently from run to run, where
            that is why no more was compared; empty where it was not.
        baseline_divergence: whose behaviour the right side has, where either is right and they
            differ.
        tested_side: the side that was under test.
    """

    calls: int = 0
    steps: tuple[events.ReportedCall, ...] = ()
    pictures: tuple[events.Picture, ...] = ()
    chance: str = ""
    baseline_divergence: events.BaselineDivergence | None = None
    tested_side: Literal["left", "right"] = "right"

    @property
    def signature(self) -> str:
        """The cause of the failure; empty if there is none."""
        found = self.finding
        if found and self.tested_side == "left":
            # Signatures have the right side's kind of answer before the left side's.
            found = found.with_sides_swapped()
        return signatures.signature(replace(self, finding=found), self.operation)

    def reported_finding(self, before: str = "") -> events.ReportedFinding | None:
        """The fields of the message, with words before it; None if no answer is behind it."""
        return reported_finding(self.finding, f"{before}{self.operation}: ")

    @property
    def operation(self) -> str:
        """The operation of the last call."""
        return self.steps[-1].operation if self.steps else ""


class _LeftSideFailure(Exception):  # noqa: N818 - carries the failure to where it is told apart
    def __init__(self, failure: ImplementationFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _LeftSide:
    """The left side: its failures are kept apart from the right side's."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        try:
            return self._implementation.call(operation, args)
        except ImplementationFailure as failure:
            raise _LeftSideFailure(failure) from failure

    def check_alive(self) -> None:
        """Makes sure that a program is fit for another call."""
        try:
            if isinstance(self._implementation, ProcessBacked):
                self._implementation.check_alive()
        except ImplementationFailure as failure:
            raise _LeftSideFailure(failure) from failure

    def prefer_devices(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Steers the reference in this process; any other side chooses for itself."""
        if isinstance(self._implementation, InProcess):
            self._implementation.prefer_devices(devices)


class _Differs(Exception):  # noqa: N818 - ends a scenario at its first difference
    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass
class _FirstDifference:
    """A judge that ends a scenario at the first call whose answers differ."""

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
    """Plays where only answers are compared.

    It asks for the state where that is about to be lost, and at the end.
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
"""Steps that replace the running node, so that its state is lost."""


def play(pair: Pair, scenario: Scenario, scratch: Path) -> LockstepResult:
    """Plays a scenario once on both sides.

    Expectations of the case are ignored, and a step that makes no sense any more is skipped.

    Args:
        pair: the two sides.
        scenario: the scenario and its machine.
        scratch: where state directories are made; left empty.

    Raises:
        CaseError: the case cannot be played as written.
        ScratchError: there is no room for temporary files.
    """
    folder = scratch / "lockstep"
    try:
        result = _LockstepRun(pair, scenario, folder).compare()
        # On a full disk, both sides may agree that nothing works.
        require_room(folder)
        return result
    finally:
        remove_tree(folder)


class ComparedRun(Run):
    """A run that is about answers alone."""

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
        return tree.directory if tree else None  # one side may be a program

    def compare(self) -> LockstepResult:
        """Plays on both sides; how it ends."""
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
        """The same, unless a named defect of the release explains how a side broke.

        Both claim to be kubelets of the release where all is compared.
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
        """The faults among the last answers of both sides."""
        last = (self.player.session.calls[-1].answer, self._comparison.answer)
        return [answer for answer in last if isinstance(answer, messages.Fault)]

    def steps(self) -> tuple[events.ReportedCall, ...]:
        """Every call; the last with the answer of the left side."""
        shown, right = super().steps(), self._comparison.answer
        if not shown or right is None:
            return shown
        plain = replace_text(codec.to_plain(right), str(self._left_state), STATE_DIR)
        return (*shown[:-1], msgspec.structs.replace(shown[-1], expected=truncate(plain)))

    def pictures(self) -> tuple[events.Picture, ...]:
        """Both sides after the call whose answers differ, if they can show their state."""
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
"""Runs that end in the same difference, after which it is not chance."""


def examine(pair: Pair, scenario: Scenario, scratch: Path, tries: int = TRIES) -> LockstepResult:
    """Plays a scenario often enough to tell chance from a difference.

    A kubelet walks maps and sets in any order. It is compared by those of its answers that are the
    same in every run.

    If one run agrees to its end, only chance made the sides differ. Otherwise the runs that agree
    longest count: if they end in different answers of the right side, the rest of the scenario
    cannot be compared (`LockstepResult.chance`).

    Args:
        pair: the two sides.
        scenario: the scenario and its machine.
        scratch: where state directories are made.
        tries: the most runs to make; a side that broke is not tried again.

    Raises:
        CaseError: the case cannot be played as written.
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
    """Whether runs of the same calls ended in different answers."""
    answers = {codec.encode(run.steps[-1].answer) for run in runs}
    return len(answers) > 1
