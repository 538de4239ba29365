"""One scenario on two sides in lockstep: every call goes to both, until their answers differ.

The right side is the one under test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.differential.compared_player import ComparedPlayer, UncheckedInvariants
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import (
    ImplementationFailure,
    InProcess,
    Watched,
)
from numaproof.conformance.execution.pictures import picture
from numaproof.conformance.execution.run import RunResult, tree_for
from numaproof.conformance.execution.session import Session
from numaproof.conformance.execution.shown import bounded, replace_text, reported
from numaproof.conformance.judging import crash_attribution, known_defects, signatures
from numaproof.conformance.judging.baselines import Baselines
from numaproof.conformance.judging.oracle import STATE_DIR, Oracle
from numaproof.folders.removal import remove_tree
from numaproof.folders.scratch import make_folder, require_room
from numaproof.folders.state_directory import StateDirectory
from numaproof.protocol import codec, events, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.scenario import Scenario
    from numaproof.conformance.judging.baselines import Baseline
    from numaproof.conformance.judging.finding import Finding
    from numaproof.protocol.events import Outcome, Picture


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
        tested: the side that is under test; what the other one says is what is expected.
    """

    left: Implementation
    right: Implementation
    capabilities: Capabilities
    level: messages.Level
    baselines: Callable[[Baseline], Implementation] | None = None
    tell: tuple[messages.Told, ...] = ()
    tested: Literal["left", "right"] = "right"


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
        parted: whose behaviour the right side has, where either is right and they differ.
        tested: the side that was under test.
    """

    calls: int = 0
    steps: tuple[events.ReportedCall, ...] = ()
    pictures: tuple[Picture, ...] = ()
    chance: str = ""
    parted: events.Parted | None = None
    tested: Literal["left", "right"] = "right"

    @property
    def signature(self) -> str:
        """The cause of the failure; empty if there is none."""
        found = self.finding
        if found and self.tested == "left":
            # Signatures have the right side's kind of answer before the left side's.
            found = found.swapped()
        return signatures.signature(replace(self, finding=found), self.operation)

    def reported(self, before: str = "") -> events.ReportedFinding | None:
        """The fields of the message, with words before it; None if no answer is behind it."""
        return reported(self.finding, f"{before}{self.operation}: ")

    @property
    def operation(self) -> str:
        """The operation of the last call."""
        return self.steps[-1].operation if self.steps else ""


class _LeftFailure(Exception):  # noqa: N818 - carries the failure to where it is told apart
    def __init__(self, failure: ImplementationFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Left:
    """The left side: its failures are kept apart from the right side's."""

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        try:
            return self._implementation.call(operation, args)
        except ImplementationFailure as failure:
            raise _LeftFailure(failure) from failure

    def settle(self) -> None:
        """Makes sure that a program is fit for another call."""
        try:
            if isinstance(self._implementation, Watched):
                self._implementation.settle()
        except ImplementationFailure as failure:
            raise _LeftFailure(failure) from failure

    def favour(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Steers the reference in this process; any other side chooses for itself."""
        if isinstance(self._implementation, InProcess):
            self._implementation.favour(devices)


class _Differs(Exception):  # noqa: N818 - ends a scenario at its first difference
    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass
class _PairSession(Session):
    """A session that ends at the first call whose answers differ."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = super().call(operation, args)
        if self.calls[-1].problems:
            raise _Differs(replace(self.calls[-1].problems[0], source="other side"))
        return answer


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
        result = _LockstepRun(pair, scenario, folder).play()
        # On a full disk, both sides may agree that nothing works.
        require_room(folder)
        return result
    finally:
        remove_tree(folder)


class _LockstepRun:
    def __init__(self, pair: Pair, scenario: Scenario, folder: Path) -> None:
        state, left_state = folder / "right", folder / "left"
        make_folder(left_state)
        for one in (pair.left, pair.right):
            if isinstance(one, Watched):
                one.begin()
        self._pair = pair
        self._beside = _Left(pair.left)
        self._left = _judge(pair, self._beside, left_state)
        self._left_state = left_state
        tree = tree_for(scenario.case, scenario.machine, scenario.tree, folder)
        self._session = _PairSession(
            implementation=pair.right,
            capabilities=pair.capabilities,
            state_dir=StateDirectory.made(state),
            kubernetes=pair.capabilities.kubernetes,
            machine=scenario.machine,
            level=pair.level,
            root=tree.directory if tree else None,  # one side may be a program
            oracle=self._left,
            from_tree=scenario.case.tree,
            tell=pair.tell,
        )
        case = _without_expectations(scenario.case)
        self._player = ComparedPlayer(
            case,
            self._session,
            Facts(scenario.machine),
            pair.level,
            UncheckedInvariants(pair.level),
        )

    def play(self) -> LockstepResult:
        try:
            self._player.play()
            self._beside.settle()
            if isinstance(self._pair.right, Watched):
                self._pair.right.settle()
                self._session.check_state()
        except NotSupportedError as missing:
            return LockstepResult("unsupported", f"one side does not have {missing}")
        except _LeftFailure as left:
            return self._broken(left.failure, "the left side: ")
        except ImplementationFailure as failure:
            return self._broken(failure)
        except _Differs as differs:
            last = self._session.calls[-1]
            faults = [
                one for one in (last.answer, self._left.answer) if isinstance(one, messages.Fault)
            ]
            found = differs.finding
            if self._pair.tested == "left":
                found = found.swapped()
            last.problems[:] = [found]
            ended = self._ended(
                "fault" if faults else "fail", f"{last.operation}: {found}", faults=faults
            )
            pictures, tested = self._pictures(), self._pair.tested
            return replace(ended, finding=found, pictures=pictures, tested=tested)
        return LockstepResult("pass", calls=len(self._session.calls), parted=self._parted())

    def _parted(self) -> events.Parted | None:
        return self._left.parted() if isinstance(self._left, Baselines) else None

    def _broken(self, failure: ImplementationFailure, whose: str = "") -> LockstepResult:
        ended = self._ended(failure.outcome, f"{whose}{failure}", failure.stderr)
        words = f"{whose}{failure.words}"
        return replace(ended, finding=failure.finding, words=words, ending=failure.ending)

    def _ended(
        self,
        outcome: Outcome,
        message: str,
        stderr: str = "",
        faults: Sequence[messages.Fault] = (),
    ) -> LockstepResult:
        calls = self._session.calls
        last = len(calls) - 1
        defect = self._defect(outcome, faults)
        return LockstepResult(
            outcome="expected failure" if defect else outcome,
            defect=defect,
            message=message,
            calls=len(calls),
            steps=tuple(self._step(number, last) for number in range(len(calls))),
            stderr=stderr,
            parted=self._parted(),
        )

    def _defect(self, outcome: Outcome, faults: Sequence[messages.Fault]) -> str | None:
        """The named defect of the release that explains how a side broke.

        Both claim to be kubelets of the release where all is compared.
        """
        if self._pair.level != "kubelet":
            return None
        known = known_defects.known_defects(self._session.kubernetes)
        if outcome == "time-out":
            session = self._session
            call = session.calls[-1]
            asked = crash_attribution.BrokenCall(
                call.operation, call.args, session.config, session.machine
            )
            return crash_attribution.never_answered(asked, known)
        if len(faults) == 1:
            return crash_attribution.panicked(faults[0], known)
        return None

    def _step(self, number: int, last: int) -> events.ReportedCall:
        call = self._session.calls[number]
        own = self._left.answer if number == last else None
        return self._session.reported(call, None if own is None else self._left_shown(own))

    def _left_shown(self, answer: messages.Answer) -> dict[str, Any]:
        plain = codec.to_plain(answer)
        shown: dict[str, Any] = bounded(replace_text(plain, str(self._left_state), STATE_DIR))
        return shown

    def _pictures(self) -> tuple[Picture, ...]:
        """Both sides after the call whose answers differ, if they can show their state."""
        if self._session.started is None or not self._pair.capabilities.has("state"):
            return ()
        drawn = []
        for title, side in (
            ("expected", self._left.reference),
            ("got", self._session.implementation),
        ):
            try:
                state = side.call("state", messages.NoArgs())
            except (ImplementationFailure, _LeftFailure):
                continue
            if isinstance(state, messages.State):
                drawn.append(picture(title, self._session.view(self._player.facts, state)))
        return tuple(drawn)


def _judge(pair: Pair, beside: _Left, state: Path) -> Oracle | Baselines:
    make = pair.baselines
    if make is None:
        return Oracle(beside, state, pair.level, pair.capabilities.discovers)
    seen = pair.capabilities.discovers
    return Baselines(lambda baseline: _Left(make(baseline)), state, pair.level, discovers=seen)


def _without_expectations(case: Case) -> Case:
    steps = (msgspec.structs.replace(step, expect="anything") for step in case.steps)
    return msgspec.structs.replace(case, steps=tuple(steps))
