"""Selecting scenarios to record: a few that reach everything, then the lowest seeds."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "adapters" / "kubelet" / "reach"


@pytest.fixture
def cover(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Loads the module of the program, which is a folder without a package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("cover")
    del sys.modules["cover"]


def places_by_seed(**scenarios: str) -> dict[int, frozenset[str]]:
    """Returns what scenarios reach, a letter for each block; the names are seeds."""
    return {int(name[1:]): frozenset(places) for name, places in scenarios.items()}


def test_a_scenario_with_unique_coverage_is_chosen(cover: Any) -> None:
    assert cover.smallest_cover(places_by_seed(s0="ab", s1="abc", s2="d", s3="cd")) == [1, 2]


def test_ties_are_broken_by_the_lowest_seed(cover: Any) -> None:
    assert cover.smallest_cover(places_by_seed(s7="ab", s3="ab", s5="b")) == [3]


def test_a_redundant_scenario_is_dropped(cover: Any) -> None:
    # The widest is taken first, but the two that reach the rest make it redundant.
    found = cover.smallest_cover(places_by_seed(s0="bcde", s1="abcx", s2="defy"))
    assert found == [1, 2]


def test_the_cover_reaches_everything_without_redundancy(cover: Any) -> None:
    chance = random.Random(5)  # noqa: S311 - the same in every run
    scenarios = {
        seed: frozenset(chance.sample(range(300), chance.randint(1, 60))) for seed in range(200)
    }
    named = {seed: frozenset(map(str, places)) for seed, places in scenarios.items()}
    chosen = cover.smallest_cover(named)
    everything = frozenset().union(*named.values())
    assert frozenset().union(*(named[seed] for seed in chosen)) == everything
    for left_out in chosen:
        others = (named[seed] for seed in chosen if seed != left_out)
        assert frozenset().union(*others) != everything
    assert len(chosen) < 30


def test_nothing_is_chosen_from_an_empty_set(cover: Any) -> None:
    assert cover.smallest_cover({}) == []


def test_the_lowest_seeds_are_added_up_to_the_minimum(cover: Any) -> None:
    assert cover.fill_up([2, 90], range(100), 5) == [0, 1, 2, 3, 90]
    assert cover.fill_up([2, 90], [1, 2, 90], 5) == [1, 2, 90]
    assert cover.fill_up([2, 90], range(100), 1) == [2, 90]


def test_ranges_of_seeds_round_trip(cover: Any) -> None:
    seeds = [0, 1, 2, 7, 9, 10]
    assert cover.as_ranges(seeds) == "0:3,7,9:11"
    assert cover.from_ranges("9:11,7,0:3,1") == seeds
    with pytest.raises(ValueError, match="invalid literal"):
        cover.from_ranges("0:x")
