"""Evaluation of hints: by definition on small machines, by search on larger ones.

`numaproof.reference.topology.hints` and `numaproof.reference.topology.merge` define the functions
here. `numaproof.reference.topology.search` computes the same answers on machines with many NUMA
nodes. The rest of the reference calls only this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.topology import hints as definition
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology.search import enumeration
from numaproof.reference.topology.search import merge as search
from numaproof.reference.topology.search.enumeration import list_hints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reference.topology.hints import Demand, Resources, TopologyHint
    from numaproof.reference.topology.merge import Rules

__all__ = ["list_hints", "merge", "narrowest", "satisfiable"]

MAX_ENUMERATED = 2
"""The definitions are as fast as the search on up to this many NUMA nodes."""


def satisfiable(demand: Demand) -> bool:
    if len(demand.nodes) <= MAX_ENUMERATED:
        return definition.satisfiable(demand)
    return enumeration.satisfiable(demand)


def narrowest(demand: Demand, containing: int = 0, first_choice: int = 0) -> TopologyHint | None:
    if len(demand.nodes) <= MAX_ENUMERATED:
        return definition.narrowest(demand, containing, first_choice)
    return enumeration.narrowest(demand, containing, first_choice)


def merge(rules: Rules, providers: Sequence[Resources | None]) -> TopologyHint:
    if rules.nodes.bit_count() <= MAX_ENUMERATED:
        return merging.merge(rules, providers)
    return search.merge(rules, providers)
