"""Finds a small set of scenarios that reaches everything that any scenario reaches."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet


def smallest_cover(names_by_seed: Mapping[int, AbstractSet[str]]) -> list[int]:
    """Returns the sorted seeds of a few scenarios that together reach as much as all of them.

    The algorithm is greedy: it repeatedly takes the scenario that adds the most (in a tie, the one
    with the lowest seed), then drops those that the others make redundant. The result is not
    necessarily the smallest possible.

    Args:
        names_by_seed: the names of what each scenario reaches, by seed.
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
    """Adds the lowest of the other seeds until there are `min_seeds`."""
    kept = set(cover_seeds)
    for seed in sorted(seeds):
        if len(kept) >= min_seeds:
            break
        kept.add(seed)
    return sorted(kept)


def as_ranges(seeds: Iterable[int]) -> str:
    """Formats seeds for `numaproof record --seeds`: ``0:300,305``."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and ranges[-1][1] == seed:
            ranges[-1][1] += 1
        else:
            ranges.append([seed, seed + 1])
    return ",".join(str(first) if end == first + 1 else f"{first}:{end}" for first, end in ranges)


def from_ranges(text: str) -> list[int]:
    """Parses seeds in the format of `as_ranges`.

    Raises:
        ValueError: the text is malformed.
    """
    seeds: set[int] = set()
    for part in text.split(","):
        first, colon, end = part.partition(":")
        seeds |= set(range(int(first), int(end) if colon else int(first) + 1))
    return sorted(seeds)
