"""CPU sets and NUMA sets, stored as integer bit masks.

Bit ``n`` is set if ``n`` is a member, so union, intersection, difference and counting are single
integer operations.
"""

from __future__ import annotations

from functools import total_ordering
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LARGEST_MEMBER = 1 << 16
"""Upper limit for members, so that a typo cannot allocate a gigabyte."""


_MAX_DIGITS = 5
_MAX_SHOWN = 200
"""Maximum number of characters of a list to include in an error."""


class ListFormatError(ValueError):
    """A string is not in the Linux list format."""


@total_ordering
class IntegerSet:
    """An immutable set of small non-negative integers.

    Iteration is in ascending order. Sets are ordered by their masks, so a set whose largest member
    is smaller comes first.
    """

    __slots__ = ("mask",)

    mask: int

    def __init__(self, members: Iterable[int] = ()) -> None:
        """Creates a set of the given members.

        Raises:
            ValueError: a member is negative or is not below `LARGEST_MEMBER`.
        """
        mask = 0
        for member in members:
            if not 0 <= member < LARGEST_MEMBER:
                raise ValueError(f"{member} is out of range (0 to {LARGEST_MEMBER - 1})")
            mask |= 1 << member
        object.__setattr__(self, "mask", mask)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    @classmethod
    def from_mask(cls, mask: int) -> Self:
        """Creates a set from a bit mask."""
        made = cls.__new__(cls)
        object.__setattr__(made, "mask", mask)
        return made

    @classmethod
    def parse(cls, text: str, below: int = LARGEST_MEMBER) -> Self:
        """Parses a set in the Linux list format, such as ``0-3,8``.

        The empty string is the empty set. Surrounding white space is ignored, because the kernel's
        files end with a line break.

        Args:
            text: the list.
            below: the upper limit for members and for the number of parts.

        Raises:
            ListFormatError: the string is not in that format.
        """
        text = text.strip()
        if text.count(",") >= below:
            raise ListFormatError(f"the list has more than {below} parts")
        mask = 0
        for part in text.split(",") if text else ():
            first, dash, last = part.partition("-")
            low = _member(first, text, below)
            high = _member(last, text, below) if dash else low
            if high < low:
                raise ListFormatError(f"range {part!r} in {_cut(text)} is reversed")
            mask |= (1 << (high + 1)) - (1 << low)
        return cls.from_mask(mask)

    def __str__(self) -> str:
        """Formats the set in the Linux list format, with ranges for consecutive members."""
        parts = []
        rest, base = self.mask, 0
        while rest:
            gap = (rest & -rest).bit_length() - 1
            base, rest = base + gap, rest >> gap
            run = (~rest & (rest + 1)).bit_length() - 1
            parts.append(str(base) if run == 1 else f"{base}-{base + run - 1}")
            base, rest = base + run, rest >> run
        return ",".join(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({str(self)!r})"

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __iter__(self) -> Iterator[int]:
        rest = self.mask
        while rest:
            lowest = rest & -rest
            yield lowest.bit_length() - 1
            rest ^= lowest

    def __contains__(self, member: int) -> bool:
        return member >= 0 and bool(self.mask >> member & 1)

    def __eq__(self, other: object) -> bool:
        return self.mask == other.mask if isinstance(other, IntegerSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.mask)

    def __lt__(self, other: Self) -> bool:
        return self.mask < other.mask

    def __or__(self, other: Self) -> Self:
        return self.from_mask(self.mask | other.mask)

    def __and__(self, other: Self) -> Self:
        return self.from_mask(self.mask & other.mask)

    def __sub__(self, other: Self) -> Self:
        return self.from_mask(self.mask & ~other.mask)

    def issubset(self, other: Self) -> bool:
        """Whether every member of this set is a member of `other`."""
        return not self.mask & ~other.mask

    def isdisjoint(self, other: Self) -> bool:
        """Whether the two sets have no member in common."""
        return not self.mask & other.mask

    def first(self, count: int) -> Self:
        """Returns the `count` lowest members, or all if there are fewer."""
        taken, rest = 0, self.mask
        for _ in range(min(count, len(self))):
            lowest = rest & -rest
            taken |= lowest
            rest ^= lowest
        return self.from_mask(taken)

    @classmethod
    def union(cls, sets: Iterable[Self]) -> Self:
        """Returns the union of any number of sets."""
        mask = 0
        for one in sets:
            mask |= one.mask
        return cls.from_mask(mask)


class CPUSet(IntegerSet):
    """A set of logical CPUs, by their Linux CPU numbers."""

    __slots__ = ()


class NUMASet(IntegerSet):
    """A set of NUMA nodes, by their Linux node ids."""

    __slots__ = ()


def _member(text: str, whole: str, below: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ListFormatError(f"{_cut(text)} in {_cut(whole)} is not a number")
    digits = text.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS or (member := int(digits)) >= below:
        raise ListFormatError(f"{text[:20]} in {_cut(whole)} is larger than {below - 1}")
    return member


def _cut(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")
