"""The source of random choices: Hypothesis or a seed.

All generators use a single kind of choice: an integer in a range. The same code therefore works
with Hypothesis, which shrinks every choice towards the lowest, and with seeds, whose scenarios are
the same in every version of Python and Hypothesis.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.internal.conjecture.data import ConjectureData

_T = TypeVar("_T")


class Choices(ABC):
    """A source of choices. The lowest integer and the first option are considered the simplest."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """Chooses an integer from `low` to `high`, inclusive."""

    def pick(self, options: Sequence[_T]) -> _T:
        """Chooses an option; options that are listed twice are twice as likely."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        """Returns True with a probability of one in `one_in`; False is simpler."""
        return self.integer(0, one_in - 1) == one_in - 1

    def some(self, options: Sequence[_T], least: int, most: int) -> list[_T]:
        """Chooses from `least` to `most` different options, and keeps their order."""
        left = list(range(len(options)))
        count = self.integer(min(least, len(left)), min(most, len(left)))
        taken = [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]
        return [options[place] for place in sorted(taken)]


class Seeded(Choices):
    """Choices derived from a seed."""

    def __init__(self, seed: int) -> None:
        # Only `random` promises the same numbers in every version of Python.
        self._next = random.Random(seed).random  # noqa: S311 - reproducible on purpose

    def integer(self, low: int, high: int) -> int:
        """See `Choices.integer`."""
        return low + int(self._next() * (high - low + 1))


class Drawn(Choices):
    """Choices that Hypothesis draws and shrinks.

    They are drawn from Hypothesis's own source, because a strategy for each takes three times as
    long.
    """

    def __init__(self, source: ConjectureData) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        """See `Choices.integer`; draws nothing if there is only one value."""
        return low if low == high else self._source.draw_integer(low, high)


class _Built(st.SearchStrategy[_T]):
    """See `strategy_of`."""

    def __init__(self, make: Callable[[Choices], _T]) -> None:
        super().__init__()
        self._make = make

    def do_draw(self, data: ConjectureData) -> _T:
        """Builds a value."""
        return self._make(Drawn(data))


def strategy_of(make: Callable[[Choices], _T]) -> st.SearchStrategy[_T]:
    """Returns a strategy for the values that `make` builds from choices."""
    return _Built(make)
