"""Hints by their definition: which sets of nodes meet a demand, and which are preferred."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.topology import hints
from numaproof.reference.topology.hints import Demand, Need, Supply, TopologyHint
from numaproof.reference.topology.search import enumeration


@pytest.fixture(params=[hints, enumeration], ids=["definition", "search"])
def way(request: pytest.FixtureRequest) -> Any:
    """The definition, and the search."""
    return request.param


def need(amount: int, free: list[int], total: int = 4, **more: Any) -> Need:
    """A need of what the nodes 0, 1, ... have."""
    return Need(
        amount,
        tuple(Supply(1 << node, has) for node, has in enumerate(free)),
        tuple(Supply(1 << node, total) for node in range(len(free))),
        **more,
    )


def test_sets_with_enough_are_hints_and_the_fewest_nodes_are_preferred(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(4, [4, 2, 2]),))
    assert way.listed(demand) == (
        TopologyHint(0b001, preferred=True),
        TopologyHint(0b011, preferred=False),
        TopologyHint(0b101, preferred=False),
        TopologyHint(0b110, preferred=False),
        TopologyHint(0b111, preferred=False),
    )


def test_no_hint_is_preferred_when_an_empty_machine_would_do_with_fewer_nodes(way: Any) -> None:
    demand = Demand((0, 1), (need(4, [2, 2]),))
    assert way.listed(demand) == (TopologyHint(0b11, preferred=False),)


def test_hints_are_listed_in_the_order_of_the_demands_nodes(way: Any) -> None:
    demand = Demand((2, 0, 1), (need(5, [4, 4, 4]),))
    assert [hint.nodes for hint in way.listed(demand)] == [0b101, 0b110, 0b011, 0b111]


def test_every_need_counts(way: Any) -> None:
    demand = Demand((0, 1), (need(1, [1, 0]), need(1, [0, 1])))
    assert [hint.nodes for hint in way.listed(demand)] == [0b11]


def test_what_is_reusable_counts_for_its_exact_set_of_nodes(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(4, [0, 1, 0], reusable=(Supply(0b011, 3),)),))
    assert [hint.nodes for hint in way.listed(demand)] == [0b011]


def test_what_is_reusable_does_not_make_up_for_too_little_on_an_empty_machine(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(9, [4, 4, 0], reusable=(Supply(0b011, 4),), total=4),))
    assert [hint.nodes for hint in way.listed(demand)] == []


def test_a_device_near_several_nodes_is_had_on_any_of_them_once(way: Any) -> None:
    devices = (Supply(0b011, 1), Supply(0b110, 1))
    demand = Demand((0, 1, 2), (Need(2, devices, devices),))
    assert [hint.nodes for hint in way.listed(demand)] == [0b010, 0b011, 0b101, 0b110, 0b111]


def test_a_hint_has_a_node_of_all_that_is_to_be_reused(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(1, [4, 4, 4]),), touching=(0b001, 0b110))
    assert [hint.nodes for hint in way.listed(demand)] == [0b011, 0b101, 0b111]


def test_a_node_in_use_with_a_group_serves_as_that_group_only(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(1, [4, 4, 4]),), cells=((0, 0b011), (1, 0b011)))
    assert [hint.nodes for hint in way.listed(demand)] == [0b100, 0b011]


def test_with_sockets_hints_within_as_few_sockets_are_preferred(way: Any) -> None:
    demand = Demand((0, 1, 2, 3), (need(4, [2, 2, 2, 2]),), sockets=(0b0011, 0b1100), per_socket=2)
    preferred = [hint.nodes for hint in way.listed(demand) if hint.preferred]
    assert preferred == [0b0011, 0b1100]


def test_the_narrowest_hint_contains_the_given_nodes(way: Any) -> None:
    demand = Demand((0, 1, 2), (need(4, [4, 2, 2]),))
    assert way.narrowest(demand) == TopologyHint(0b001, preferred=True)
    assert way.narrowest(demand, 0b010) == TopologyHint(0b011, preferred=False)
    assert way.narrowest(demand, 0b1000) is None


def test_a_demand_beyond_what_is_free_has_no_hint(way: Any) -> None:
    demand = Demand((0, 1), (need(5, [2, 2]),))
    assert way.listed(demand) == ()
    assert way.narrowest(demand) is None
    assert not way.satisfiable(demand)
    assert way.satisfiable(Demand((0, 1), (need(4, [2, 2]),)))
