"""Finds a small set of scenarios that reaches everything that any scenario reaches."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet


def smallest_cover(names_by_seed: Mapping[int, AbstractSet[str]]) -> list[int]:
    """The seeds of a few scenarios that reach everything that any of them reaches, in order.

    Greedy: always the one that adds most, the lowest of equals; then those are left out that the
    others make needless. Fewest of all it need not be, which is hard to find.

    Args:
        names_by_seed: by seed, the names of what its scenario reaches.
    """
    bits = {
        name: 1 << number
        for number, name in enumerate(sorted(set().union(*names_by_seed.values())))
    }
    masks = {
        seed: sum(bits[name] for name in names) for seed, names in sorted(names_by_seed.items())
    }
    left = _union(masks.values())
    chosen: list[int] = []
    while left:
        best = max(masks, key=lambda seed: ((masks[seed] & left).bit_count(), -seed))
        chosen.append(best)
        left &= ~masks[best]
    everything = _union(masks.values())
    for seed in tuple(chosen):
        others = [one for one in chosen if one != seed]
        if _union(masks[one] for one in others) == everything:
            chosen = others
    return sorted(chosen)


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def fill_up(cover_seeds: Iterable[int], seeds: Iterable[int], min_seeds: int) -> list[int]:
    """The chosen seeds plus the first of the others, up to `min_seeds` in all."""
    kept = set(cover_seeds)
    for seed in sorted(seeds):
        if len(kept) >= min_seeds:
            break
        kept.add(seed)
    return sorted(kept)


def as_ranges(seeds: Iterable[int]) -> str:
    """Seeds in the form of `numaproof record --seeds`: ``0:300,305``."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and ranges[-1][1] == seed:
            ranges[-1][1] += 1
        else:
            ranges.append([seed, seed + 1])
    return ",".join(str(first) if end == first + 1 else f"{first}:{end}" for first, end in ranges)


def from_ranges(text: str) -> list[int]:
    """Parses the seeds of such a text.

    Raises:
        ValueError: the text is malformed.
    """
    seeds: set[int] = set()
    for part in text.split(","):
        first, colon, end = part.partition(":")
        seeds |= set(range(int(first), int(end) if colon else int(first) + 1))
    return sorted(seeds)
