"""Checks that an implementation is deterministic by replaying scenarios and comparing answers.

The implementation is restarted before each replay, which exposes answers that depend on the process
or on earlier requests. Answers are normalized so that they do not vary between runs of a kubelet.
The comparison stops after a call whose answers differ only in the choice among equivalent devices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.execution.run import Run, RunResult, Scenario, Target
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.conformance.fuzzing.shrinking import shrink
from numaproof.conformance.judging import signatures
from numaproof.conformance.judging.oracle import disagreement
from numaproof.protocol import events, messages

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.session import Call, Session
    from numaproof.conformance.judging.finding import Finding

OUTCOME: events.Outcome = "nondeterministic"

REPEATS = 3
"""Number of replays of a scenario."""

OFTEN = ("--repeat", "10")
"""The options of `replay` that reproduce different answers, because a single run may pass."""

_TRIES = 60
"""Maximum number of scenarios to try while shrinking; each starts the implementation twice."""


@dataclass(frozen=True)
class Nondeterminism:
    """Two runs of a scenario whose answers differ from a certain call on.

    Attributes:
        scenario: the scenario.
        steps: the calls up to the difference; the last one expects the first run's answer.
        operation: the operation of that call.
        message: how the answers differ, or how one of the runs failed.
        finding: the difference; None if one of the runs failed.
        broke: the result of the run in which the program failed; None if it answered in both.
        cut_short: whether shrinking ran out of time.
    """

    scenario: Scenario
    steps: tuple[events.ReportedCall, ...]
    operation: str
    message: str
    finding: Finding | None = None
    broke: RunResult | None = None
    cut_short: bool = False

    @property
    def signature(self) -> str:
        """Identifies the answers that differ, independently of the scenario."""
        # Signatures show the first run's answer first.
        found = self.finding and self.finding.with_sides_swapped()
        end = self.broke or RunResult(OUTCOME, finding=found)
        return signatures.signature(end, self.operation)

    @property
    def result(self) -> RunResult:
        """The combined result of the runs."""
        if self.broke:
            slow = ": it is slow or flaky" if self.broke.outcome == "time-out" else ""
            return replace(self.broke, message=f"{self.message} (not every time{slow})")
        return RunResult(OUTCOME, f"{self._head}{self.message}")

    @property
    def reported_finding(self) -> events.ReportedFinding | None:
        """The fields of the result's message."""
        return reported_finding(self.finding, self._head)

    @property
    def _head(self) -> str:
        return f"the same calls were answered differently: {self.operation}: "


class DeterminismCheck:
    """Replays scenarios and compares the answers.

    Args:
        target: the implementation under test. It is compared with itself at level placement or
            above, even if it claims a lower level.
        scratch: an empty folder for state directories; the caller removes it.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self._target = replace(target, oracle=None)
        self._level = target.level if applies("placement", target.level) else "placement"
        self._scratch = scratch
        self._number = 0

    def nondeterminism(
        self, scenario: Scenario, first: Run, times: int = REPEATS
    ) -> Nondeterminism | None:
        """Replays a scenario up to `times` times; returns None if the answers never differ.

        Args:
            scenario: the scenario.
            first: the scenario's first run.
            times: the maximum number of replays.
        """
        for _ in range(times):
            found = self._compare(scenario, first, self._play(scenario))
            if found:
                return found
        return None

    def smallest(self, nondeterminism: Nondeterminism) -> Nondeterminism:
        """Finds the smallest scenario in which answers to the same operation differ."""

        def try_scenario(scenario: Scenario) -> Nondeterminism | None:
            smaller = self.nondeterminism(scenario, self._play(scenario), times=1)
            return smaller if smaller and _kind(smaller) == _kind(nondeterminism) else None

        best, cut_short = shrink(nondeterminism, nondeterminism.scenario, try_scenario, _TRIES)
        return replace(best, cut_short=cut_short)

    def _play(self, scenario: Scenario) -> Run:
        self._target.implementation.close()
        self._number += 1
        folder = self._scratch / f"again-{self._number}"
        run = Run(self._target, scenario.case, scenario.machine, scenario.tree, folder)
        run.play()
        return run

    def _compare(self, scenario: Scenario, first: Run, again: Run) -> Nondeterminism | None:
        """Finds the first call whose answers differ between two runs."""
        one, two = first.player.session, again.player.session
        for number, (left, right) in enumerate(zip_longest(one.calls, two.calls)):
            if left is None or right is None:
                break
            if _differ_in_devices(left.answer, right.answer):
                return None
            found = self._difference(one, left, two, right)
            if found:
                steps = (*first.steps()[:number], _both(one, left, two, right, found))
                return Nondeterminism(scenario, steps, left.operation, str(found), found)
        return _broken_once(scenario, first, again)

    def _difference(
        self, left_session: Session, left: Call, right_session: Session, right: Call
    ) -> Finding | None:
        if left.answer is None or right.answer is None:
            return None
        if isinstance(left.answer, messages.Fault) and isinstance(right.answer, messages.Fault):
            return None  # traces always differ
        return disagreement(
            left.args,
            right_session.normal(right.answer),
            left_session.normal(left.answer),
            self._level,
            left_session.capabilities.discovers,
        )


def _broken_once(scenario: Scenario, first: Run, again: Run) -> Nondeterminism | None:
    """Reports a program that failed in only one of two runs.

    If it failed in both, the cause may depend on the machine's load.
    """
    if (first.broke is None) == (again.broke is None):
        return None
    run = first if first.broke else again
    assert run.broke is not None
    steps = run.steps()
    operation = steps[-1].operation if steps else ""
    return Nondeterminism(scenario, steps, operation, run.broke.message, broke=run.broke)


def _kind(nondeterminism: Nondeterminism) -> tuple[str, events.Outcome]:
    return nondeterminism.operation, nondeterminism.result.outcome


def _both(
    left_session: Session, left: Call, right_session: Session, right: Call, finding: Finding
) -> events.ReportedCall:
    expected = None if left.answer is None else left_session.to_stable_plain(left.answer)
    return right_session.reported_call(replace(right, problems=[finding]), expected)


def _differ_in_devices(left: messages.Answer | None, right: messages.Answer | None) -> bool:
    """Whether two admissions differ in their devices but not in the number of devices."""
    if not (isinstance(left, messages.Admitted) and isinstance(right, messages.Admitted)):
        return False
    return left != right and _with_device_counts(left) == _with_device_counts(right)


def _with_device_counts(answer: messages.Admitted) -> Any:
    return {
        name: (
            msgspec.structs.replace(one, devices={}),
            {resource: len(ids) for resource, ids in (one.devices or {}).items()},
        )
        for name, one in answer.containers.items()
    }
