"""Hints by definition: the sets of nodes that satisfy a demand, and the preferred ones."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.topology import hints
from numaproof.reference.topology.hints import Demand, Need, Supply
from numaproof.reference.topology.search import enumeration


@pytest.fixture(params=[hints, enumeration], ids=["definition", "search"])
def way(request: pytest.FixtureRequest) -> Any:
    """The definition and the search."""
    return request.param


def need(amount: int, free: list[int], total: int = 4, **more: Any) -> Need:
    """A need, given the amounts on nodes 0, 1, ..."""
    return Need(
        amount,
        tuple(Supply(1 << node, has) for node, has in enumerate(free)),
        tuple(Supply(1 << node, total) for node in range(len(free))),
        **more,
    )


def test_reusable_resources_count_for_their_exact_nodes(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(4, [0, 1, 0], reusable=(Supply(0b011, 3),)),))
    assert [hint.nodes for hint in way.list_hints(demand)] == [0b011]


def test_reusable_resources_do_not_count_on_an_empty_machine(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(9, [4, 4, 0], reusable=(Supply(0b011, 4),), total=4),))
    assert [hint.nodes for hint in way.list_hints(demand)] == []
