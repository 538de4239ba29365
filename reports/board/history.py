"""Since which version an implementation meets a requirement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from numaproof.reports.board.standing import NOT_ASKED, STATES, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.events import ReportedRequirement
    from numaproof.reports.board.data import Tally
    from numaproof.reports.board.standing import BoardImplementation, Entry, State

Verdict = Literal["met", "named defects only", "not met"]
"""Whether a tested version meets a requirement, or breaks it only by named defects."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""The verdicts, the best first."""


@dataclass(frozen=True)
class Step:
    """The state of a requirement in one version of an implementation for one release."""

    entry: Entry
    state: State
    tally: Tally

    @property
    def is_asked(self) -> bool:
        """Whether the requirement was tested."""
        return self.state not in NOT_ASKED

    @property
    def is_partial(self) -> bool:
        """Whether parts of the version's runs are missing."""
        return bool(self.entry.gaps)

    @property
    def version(self) -> str:
        """The version of the implementation."""
        return self.entry.author.version

    @property
    def verdict(self) -> Verdict:
        """Whether the version meets the requirement, if it was tested."""
        if self.state == "pass":
            return "met"
        return "named defects only" if self.state == "expected" else "not met"


@dataclass(frozen=True)
class History:
    """The states of a requirement in all checked versions of an implementation, oldest first."""

    implementation: BoardImplementation
    steps: tuple[Step, ...]

    @cached_property
    def asked(self) -> tuple[Step, ...]:
        """The versions for which the requirement was tested."""
        return tuple(step for step in self.steps if step.is_asked)

    @property
    def latest(self) -> Step:
        """The newest version for which the requirement was tested."""
        return self.asked[-1]

    @property
    def is_current(self) -> bool:
        """Whether the requirement was tested for the newest version."""
        return self.steps[-1].is_asked

    @cached_property
    def since(self) -> Step:
        """The oldest version since which all tested versions have the verdict of the latest."""
        first = self.latest
        for step in reversed(self.asked):
            if step.verdict != self.latest.verdict:
                break
            first = step
        return first

    @property
    def before(self) -> Step | None:
        """The last version with another verdict than the latest, if any."""
        older = self.asked[: self.asked.index(self.since)]
        return older[-1] if older else None

    @property
    def origin(self) -> str:
        """What is known about the version before the oldest one with the latest verdict."""
        if self.before:
            return f"before: {self.before.verdict} in {self.before.version}"
        return "the only version tested" if len(self.asked) == 1 else "the oldest version tested"

    def in_release(self, release: str) -> tuple[Step, ...]:
        """Returns the versions that were tested for a release, those of complete runs first."""
        found = (step for step in self.asked if step.entry.kubernetes == release)
        return tuple(sorted(found, key=lambda step: step.is_partial))


@dataclass(frozen=True)
class RequirementHistory:
    """The histories of a requirement in all implementations."""

    requirement: ReportedRequirement
    histories: tuple[History, ...]

    @cached_property
    def asked(self) -> tuple[History, ...]:
        """The implementations for which the requirement was tested, the best verdicts first.

        Among equal verdicts, those of complete runs come first.
        """
        found = (one for one in self.histories if one.asked)
        return tuple(sorted(found, key=_rank))

    @property
    def not_asked(self) -> tuple[BoardImplementation, ...]:
        """The implementations for which the requirement was not tested."""
        return tuple(one.implementation for one in self.histories if not one.asked)

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases for which the requirement was tested, oldest first."""
        found = {step.entry.kubernetes for one in self.asked for step in one.asked}
        return tuple(sorted(found, key=version_key))

    @property
    def states(self) -> tuple[State, ...]:
        """The states of tested versions, the worst first."""
        found = {step.state for one in self.asked for step in one.asked}
        return tuple(state for state in STATES if state in found)

    def count(self, verdict: Verdict) -> int:
        """Counts the implementations whose latest tested version has a verdict."""
        return sum(one.latest.verdict == verdict for one in self.asked)


def _rank(history: History) -> tuple[int, bool]:
    return VERDICTS.index(history.latest.verdict), history.latest.is_partial


def requirement_history(
    requirement: ReportedRequirement, implementations: Iterable[BoardImplementation]
) -> RequirementHistory:
    """Returns the states of a requirement in all versions of all implementations."""
    return RequirementHistory(
        requirement, tuple(_history(requirement.id, one) for one in implementations)
    )


def _history(requirement: str, implementation: BoardImplementation) -> History:
    steps = (
        Step(
            entry,
            entry.states.get(requirement, "untested"),
            entry.requirements.get(requirement, {}),
        )
        for entry in implementation.versions
    )
    return History(implementation, tuple(steps))
