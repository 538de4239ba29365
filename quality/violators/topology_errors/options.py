"""Violators of what the Topology Manager refuses, continued: numbers of nodes, gates, distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.config import gates
from numaproof.reference.config.options import OptionError
from numaproof.reference.golang import numbers
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-errors")

_GATE = "TopologyManagerPolicyOptions"
_LEAST = topology_options.MOST_NODES_BY_DEFAULT


# How many nodes


def _taking(changes: Changes, most: Callable[[str], int | None]) -> None:
    """Lets `most` read a number of nodes that is refused; None leaves it refused."""

    def read(original: Any, text: str) -> Any:
        try:
            return original(text)
        except OptionError:
            found = most(text)
            if found is None:
                raise
            return found

    changes.around(topology_options, "read_most_nodes", read)


def _number(text: str) -> int | None:
    try:
        return numbers.signed(text)
    except numbers.NumeralError:
        return None


@seeds("TOPO-ERROR-007")
def zero_lifts_the_limit_of_numa_nodes(changes: Changes) -> None:
    """An author takes 0 for "no limit"."""
    _taking(changes, lambda text: 1 << 62 if _number(text) == 0 else None)


@seeds("TOPO-ERROR-007")
def negative_numbers_of_numa_nodes_are_passed_over(changes: Changes) -> None:
    """An author compares the least number with a positive one only."""
    _taking(changes, lambda text: _LEAST if (_number(text) or 0) < 0 else None)


# Feature gates


@seeds("TOPO-ERROR-009")
def the_gate_of_options_can_still_be_turned_off(changes: Changes) -> None:
    """An author does not know that the gate is locked since 1.36."""

    def enabled(original: Any, given: Any, known: Any) -> Any:
        wanted = given.get("featureGates") or {}
        locked = isinstance(wanted, dict) and known.get(_GATE) and known[_GATE].locked
        if not locked or wanted.get(_GATE) is not False:
            return original(given, known)
        others = {name: on for name, on in wanted.items() if name != _GATE}
        return {**original({**given, "featureGates": others}, known), _GATE: False}

    changes.around(gates, "enabled", enabled)


# Distances


def _far(changes: Changes, lenient: Callable[[str, Any], bool]) -> None:
    """Lets missing rows of distances be far ones, where `lenient` says so."""

    def of_nodes(original: Any, name: str, options: Any, rows: Any, *rest: Any) -> Any:
        if lenient(name, rows):
            rows = {node: () if row is None else row for node, row in rows.items()}
        return original(name, options, rows, *rest)

    changes.around(policies, "of_nodes", of_nodes)


@seeds("TOPO-ERROR-011")
def one_node_with_distances_is_enough(changes: Changes) -> None:
    """An author refuses machines that report no distances at all."""
    _far(changes, lambda name, rows: any(row is not None for row in rows.values()))
