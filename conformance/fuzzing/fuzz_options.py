"""The budget and the options of a fuzz run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.database import ExampleDatabase

    from numaproof.conformance.known_failures.entries import KnownFailures

BATCH = 100
"""Maximum number of examples from one seed: half random, then half guided by a target."""

SMALLEST_BATCH = 25
"""Below this size, a batch is too small to be guided by a target."""

REPLAY_EVERY = 25
"""One in this many passing examples is replayed."""


SEARCH, SHRINK, REPLAY = 0.9, 0.95, 0.98
"""The fractions of a time limit after which the search, shrinking and replays stop. The rest is for
stopping the program."""


@dataclass(frozen=True)
class Budget:
    """When to stop fuzzing: after a number of examples or seconds, whichever comes first.

    The seconds include shrinking and replaying failures.
    """

    examples: int | None
    seconds: float | None

    def allows_another(self, played_examples: int, elapsed_seconds: float) -> bool:
        """Whether the budget allows another example; it always allows the first."""
        if not played_examples:
            return True
        return (
            self.examples is None or played_examples < self.examples
        ) and elapsed_seconds < self.search_until

    @property
    def search_until(self) -> float:
        """When to stop searching, so that there is time to shrink a failure."""
        return math.inf if self.seconds is None else self.seconds * SEARCH

    def shrink_until(self, elapsed_seconds: float, *, keep_going: bool) -> float:
        """When to stop shrinking a failure that was found after `elapsed_seconds`.

        The remaining time is for replaying it. With `keep_going`, half of the time is left for
        other findings.
        """
        if self.seconds is None:
            return math.inf
        until = self.seconds * SHRINK
        return (elapsed_seconds + until) / 2 if keep_going and elapsed_seconds < until else until

    @property
    def until(self) -> float:
        """When to stop replaying a failure."""
        return math.inf if self.seconds is None else self.seconds * REPLAY

    def batch(self, played_examples: int, targets: int) -> int:
        """Returns the size of the next batch; if possible, each target gets a batch."""
        if self.examples is None:
            return BATCH
        share = -(-self.examples // targets)
        return min(BATCH, max(SMALLEST_BATCH, share), self.examples - played_examples)


@dataclass(frozen=True)
class FuzzOptions:
    """Options of a run. By default, the same seed produces the same run.

    Attributes:
        database: stores failures; a run tries the stored ones first.
        replay_every: one in this many passing examples is replayed; 0 for none.
        keep_going: whether to continue after a finding and look for other causes.
        known_failures: known failures, whose examples are skipped.
    """

    database: ExampleDatabase | None = None
    replay_every: int = REPLAY_EVERY
    keep_going: bool = False
    known_failures: KnownFailures | None = None


CI = FuzzOptions()
