"""Merging by its definition: what every merge keeps to."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.topology import merge as definition
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, Demand, Need, Supply, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import merge as search


@pytest.fixture(params=[definition.merge, search.merge], ids=["definition", "search"])
def merge(request: pytest.FixtureRequest) -> Any:
    """Merging by the definition, and by the search."""
    return request.param


def test_providers_may_be_swapped(machines: Any, merge: Any) -> None:
    for seed in range(300):
        rules, providers = machines.random_merge(seed, 5)
        assert merge(rules, providers) == merge(rules, providers[::-1]), seed


def test_a_provider_without_preference_changes_nothing(machines: Any, merge: Any) -> None:
    for seed in range(300):
        rules, providers = machines.random_merge(seed, 5)
        assert merge(rules, [*providers, None]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {}]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {"gpu": None}]) == merge(rules, providers), seed


def test_no_set_that_all_prefer_is_narrower_than_a_preferred_result(
    machines: Any, merge: Any
) -> None:
    found = 0
    for seed in range(300):
        rules, providers = machines.random_merge(seed, 5)
        lists = [hints for one in machines.plain(providers) if one for hints in one.values()]
        shared = [{hint.nodes for hint in hints if hint.preferred} for hints in lists]
        best = merge(rules, providers)
        if best.preferred and shared:
            found += 1
            fewest = min(nodes.bit_count() for nodes in set.intersection(*shared))
            assert best.nodes.bit_count() == fewest, seed
    assert found > 30


def test_without_providers_all_nodes_are_preferred(merge: Any) -> None:
    assert merge(Rules(0b111), []) == TopologyHint(0b111, preferred=True)


def test_a_resource_that_nothing_can_serve_leaves_all_nodes_not_preferred(merge: Any) -> None:
    assert merge(Rules(0b11), [{"gpu": ()}]) == TopologyHint(0b11, preferred=False)
    nowhere = Demand((0, 1), (Need(3, (Supply(1, 1), Supply(2, 1)), ()),))
    assert merge(Rules(0b11), [{"gpu": nowhere}]) == TopologyHint(0b11, preferred=False)
    assert merge(Rules(0b11, single=True), [{"gpu": ()}]) == TopologyHint(0b11, preferred=False)


def test_hints_on_nodes_that_the_machine_lacks_count_as_named(merge: Any) -> None:
    elsewhere = {"nic": (TopologyHint(0b100, preferred=True),)}
    assert merge(Rules(0b11), [elsewhere]) == TopologyHint(0b11, preferred=False)
    distances = Distances({0: [10, 10], 1: [10, 10]})
    across = {"nic": (TopologyHint(0b101, preferred=True), TopologyHint(ANYWHERE, preferred=False))}
    assert merge(Rules(0b11, distances), [across]) == TopologyHint(0b01, preferred=True)


def test_the_closest_of_equally_many_nodes_are_taken(merge: Any) -> None:
    far = Distances({0: [10, 30, 20], 1: [30, 10, 12], 2: [20, 12, 10]})
    pairs = {"cpu": tuple(TopologyHint(nodes, preferred=True) for nodes in (0b011, 0b101, 0b110))}
    assert merge(Rules(0b111), [pairs]).nodes == 0b011
    assert merge(Rules(0b111, far), [pairs]).nodes == 0b110


@pytest.mark.parametrize(
    ("hints", "nodes"),
    [
        # The narrowest hint of the more demanding resource has two nodes.
        ([(0b0001, 0b1110), (0b0011, 0b1100)], 0b1100),
        # Its narrowest hint has three nodes, and so has one of the results.
        ([(0b0111,), (0b1111, 0b1100)], 0b0111),
        # No result has three nodes: two come before one.
        ([(0b0111,), (0b1110, 0b1001)], 0b0110),
    ],
)
def test_without_a_preferred_result_the_most_demanding_resource_sets_the_size(
    merge: Any, hints: list[tuple[int, ...]], nodes: int
) -> None:
    providers = [
        {"resource": tuple(TopologyHint(one, preferred=False) for one in listed)}
        for listed in hints
    ]
    assert merge(Rules(0b1111), providers) == TopologyHint(nodes, preferred=False)
