"""How long a fuzz run lasts, and what it does on the side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.database import ExampleDatabase

    from numaproof.conformance.known_failures.entries import KnownFailures

BATCH = 100
"""Examples from one seed at the most; the first half are made at random, the rest are steered."""

SMALLEST_BATCH = 25
"""Examples that are too few to be steered to each of the targets."""

REPLAY_EVERY = 25
"""One of so many passing examples is played a second time."""


SEARCH, SHRINK, REPLAY = 0.9, 0.95, 0.98
"""The shares of a limited time after which nothing is played to find a failure, to make one smaller
and to repeat one; the rest is for ending the program."""


@dataclass(frozen=True)
class Budget:
    """How long to fuzz: a number of examples or of seconds, whichever ends first.

    The seconds include making failures smaller and replaying them.
    """

    examples: int | None
    seconds: float | None

    def allows_another(self, played_examples: int, elapsed_seconds: float) -> bool:
        """Whether there is budget for another example; for the first there always is."""
        if not played_examples:
            return True
        return (
            self.examples is None or played_examples < self.examples
        ) and elapsed_seconds < self.search_until

    @property
    def search_until(self) -> float:
        """When to stop looking for failures: the rest of the time is for making one smaller."""
        return math.inf if self.seconds is None else self.seconds * SEARCH

    def shrink_until(self, elapsed_seconds: float, *, keep_going: bool) -> float:
        """When to stop shrinking a failure, given the seconds after which it was found.

        What is left then is for replaying it, or half of it for looking for others.
        """
        if self.seconds is None:
            return math.inf
        until = self.seconds * SHRINK
        return (elapsed_seconds + until) / 2 if keep_going and elapsed_seconds < until else until

    @property
    def until(self) -> float:
        """When to stop repeating a failure."""
        return math.inf if self.seconds is None else self.seconds * REPLAY

    def batch(self, played_examples: int, targets: int) -> int:
        """How many examples come next: a few batches for each target, where there are enough."""
        if self.examples is None:
            return BATCH
        share = -(-self.examples // targets)
        return min(BATCH, max(SMALLEST_BATCH, share), self.examples - played_examples)


@dataclass(frozen=True)
class FuzzOptions:
    """How a run goes about it; as it stands, so that the same seed makes the same run.

    Attributes:
        database: keeps what failed, and is looked into first.
        replay_every: one of so many passing examples is played a second time; 0 for none.
        keep_going: whether to go on after a finding, and look for other causes.
        known_failures: the failures that are known: examples that fail for their causes are passed
            over.
    """

    database: ExampleDatabase | None = None
    replay_every: int = REPLAY_EVERY
    keep_going: bool = False
    known_failures: KnownFailures | None = None


CI = FuzzOptions()
