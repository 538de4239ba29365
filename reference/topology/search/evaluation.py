"""How the reference evaluates hints: by definition on small machines, by search on larger ones.

`numaproof.reference.topology.hints` and `numaproof.reference.topology.merge` define these
functions; `numaproof.reference.topology.search` gives the same answers, on machines with many NUMA
nodes too. Everything else in the reference calls them here.
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
"""The most NUMA nodes on which the definitions are as fast as the search."""


def satisfiable(demand: Demand) -> bool:
    """Whether any set of nodes is a hint."""
    if len(demand.nodes) <= MAX_ENUMERATED:
        return definition.satisfiable(demand)
    return enumeration.satisfiable(demand)


def narrowest(demand: Demand, containing: int = 0) -> TopologyHint | None:
    """The best hint with all nodes of `containing`."""
    if len(demand.nodes) <= MAX_ENUMERATED:
        return definition.narrowest(demand, containing)
    return enumeration.narrowest(demand, containing)


def merge(rules: Rules, providers: Sequence[Resources | None]) -> TopologyHint:
    """The best result of merging the providers' hints."""
    if rules.nodes.bit_count() <= MAX_ENUMERATED:
        return merging.merge(rules, providers)
    return search.merge(rules, providers)
