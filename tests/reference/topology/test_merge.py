"""Merging by definition: properties of every merge."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.topology import merge as definition
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import merge as search


@pytest.fixture(params=[definition.merge, search.merge], ids=["definition", "search"])
def merge(request: pytest.FixtureRequest) -> Any:
    """Merges by definition and by search."""
    return request.param


def test_the_order_of_providers_does_not_matter(machines: Any, merge: Any) -> None:
    for seed in range(300):
        rules, providers = machines.random_merge(seed, 5)
        assert merge(rules, providers) == merge(rules, providers[::-1]), seed


def test_a_provider_without_preference_changes_nothing(machines: Any, merge: Any) -> None:
    for seed in range(300):
        rules, providers = machines.random_merge(seed, 5)
        assert merge(rules, [*providers, None]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {}]) == merge(rules, providers), seed
        assert merge(rules, [*providers, {"gpu": None}]) == merge(rules, providers), seed


def test_a_preferred_result_is_the_narrowest_preferred_by_all(machines: Any, merge: Any) -> None:
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


def test_hints_with_missing_nodes_still_name_them(merge: Any) -> None:
    elsewhere = {"nic": (TopologyHint(0b100, preferred=True),)}
    assert merge(Rules(0b11), [elsewhere]) == TopologyHint(0b11, preferred=False)
    distances = Distances({0: [10, 10], 1: [10, 10]})
    across = {"nic": (TopologyHint(0b101, preferred=True), TopologyHint(ANYWHERE, preferred=False))}
    assert merge(Rules(0b11, distances), [across]) == TopologyHint(0b01, preferred=True)
