"""Merging: what every merge keeps to, and that looking for the winner finds it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from numaproof.reference.errors import NotBuiltError
from numaproof.reference.topology.hints import ANYWHERE, Family, Hint, Need, Supply, listed
from numaproof.reference.topology.search.merge import Rules, merge


@pytest.mark.parametrize(("first", "count", "most_nodes"), [(0, 2500, 6), (100_000, 250, 10)])
def test_the_winner_that_is_looked_for_is_the_one_among_all_results(
    oracle: Any, first: int, count: int, most_nodes: int
) -> None:
    for seed in range(first, first + count):
        rules, providers = oracle.random_merge(seed, most_nodes)
        plain = oracle.plain(providers)
        wanted = oracle.fold(rules, plain)
        assert merge(rules, providers) == wanted, seed
        assert merge(rules, plain) == wanted, seed


def test_a_family_lists_its_hints_in_the_kubelets_order(oracle: Any) -> None:
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        family = oracle.random_family(rng, list(range(rng.randint(1, 7))))
        assert listed(family) == oracle.listed(family), seed


def test_the_narrowest_hint_is_the_best_of_all_around_the_given_nodes(oracle: Any) -> None:
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        nodes = list(range(rng.randint(1, 7)))
        family = oracle.random_family(rng, nodes)
        given = oracle.mask(rng.sample(nodes, rng.randint(0, min(2, len(nodes)))))
        around = [hint for hint in oracle.listed(family) if not given & ~hint.nodes]
        around.sort(key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), hint.nodes))
        assert family.narrowest(given) == (around[0] if around else None), seed
        assert bool(family) == bool(oracle.listed(family)), seed


def test_providers_may_be_swapped(oracle: Any) -> None:
    for seed in range(300):
        rules, providers = oracle.random_merge(seed, 6)
        assert merge(rules, providers) == merge(rules, providers[::-1]), seed


def test_a_provider_without_preference_changes_nothing(oracle: Any) -> None:
    for seed in range(300):
        rules, providers = oracle.random_merge(seed, 6)
        assert merge(rules, [*providers, None]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {}]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {"gpu": None}]) == merge(rules, providers), seed


def test_no_set_that_all_prefer_is_narrower_than_a_preferred_result(oracle: Any) -> None:
    found = 0
    for seed in range(300):
        rules, providers = oracle.random_merge(seed, 6)
        lists = [hints for one in oracle.plain(providers) if one for hints in one.values()]
        shared = [{hint.nodes for hint in hints if hint.preferred} for hints in lists]
        best = merge(rules, providers)
        if best.preferred and shared:
            found += 1
            fewest = min(nodes.bit_count() for nodes in set.intersection(*shared))
            assert best.nodes.bit_count() == fewest, seed
    assert found > 30


def test_without_providers_all_nodes_are_preferred() -> None:
    assert merge(Rules(0b111), []) == Hint(0b111, preferred=True)


def test_a_resource_that_nothing_can_serve_leaves_all_nodes_not_preferred() -> None:
    assert merge(Rules(0b11), [{"gpu": ()}]) == Hint(0b11, preferred=False)
    nowhere = Family((0, 1), (Need(3, (Supply(1, 1), Supply(2, 1)), ()),))
    assert merge(Rules(0b11), [{"gpu": nowhere}]) == Hint(0b11, preferred=False)
    assert merge(Rules(0b11, single=True), [{"gpu": ()}]) == Hint(0b11, preferred=False)


def test_hints_on_nodes_that_the_machine_lacks_count_as_named() -> None:
    elsewhere = {"nic": (Hint(0b100, preferred=True),)}
    assert merge(Rules(0b11), [elsewhere]) == Hint(0b11, preferred=False)
    distances = {one: dict.fromkeys((0, 1), 10) for one in (0, 1)}
    across = {"nic": (Hint(0b101, preferred=True), Hint(ANYWHERE, preferred=False))}
    assert merge(Rules(0b11, distances), [across]) == Hint(0b01, preferred=True)


def test_the_closest_of_equally_many_nodes_are_taken() -> None:
    far = {0: {0: 10, 1: 30, 2: 20}, 1: {0: 30, 1: 10, 2: 12}, 2: {0: 20, 1: 12, 2: 10}}
    pairs = {"cpu": tuple(Hint(nodes, preferred=True) for nodes in (0b011, 0b101, 0b110))}
    assert merge(Rules(0b111), [pairs]).nodes == 0b011
    assert merge(Rules(0b111, far), [pairs]).nodes == 0b110


def test_a_machine_of_34_nodes_is_merged_without_listing_its_sets() -> None:
    nodes = tuple(range(34))
    cpus = tuple(Supply(1 << node, 72) for node in (0, 1))
    memory = tuple(Supply(1 << node, 480 if node < 2 else 186) for node in range(6))
    gpus = tuple(Supply(1 << node, 1) for node in (2, 3, 4, 5))
    rules = Rules((1 << 34) - 1)
    cpu = Family((0, 1), (Need(100, cpus, cpus),))
    alone = [{"cpu": cpu}, {"memory": Family(nodes, (Need(900, memory, memory),))}]
    assert merge(rules, alone) == Hint(0b11, preferred=True)
    # GPUs are nowhere near CPUs, so a set that has enough of both is never as few as can be.
    near = [*alone, {"gpu": Family(nodes, (Need(1, gpus, gpus),))}]
    assert merge(rules, near) == Hint(0b11, preferred=False)


def test_more_sets_than_can_be_looked_at_are_refused_at_once() -> None:
    supplies = tuple(Supply(1 << node, 1 + node) for node in range(34))
    family = Family(nodes=tuple(range(34)), needs=(Need(40, supplies, supplies),))
    with pytest.raises(NotBuiltError, match="34 NUMA nodes of 34 kinds"):
        merge(Rules((1 << 34) - 1), [{"cpu": family}])
