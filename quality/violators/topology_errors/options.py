"""Violators of what the Topology Manager refuses, continued: numbers of nodes, gates, distances."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import numbers
from numaproof.reference.kubelet import configuration, gates
from numaproof.reference.kubelet.fields import ConfigError
from numaproof.reference.kubelet.options import OptionError
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology-errors")

_GATE = "TopologyManagerPolicyOptions"
_OPTIONS = "topologyManagerPolicyOptions"
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
def seven_numa_nodes_may_be_the_most(changes: Changes) -> None:
    """An author is off by one: the least is taken for the largest number to refuse."""
    _taking(changes, lambda text: _LEAST - 1 if _number(text) == _LEAST - 1 else None)


@seeds("TOPO-ERROR-007")
def zero_lifts_the_limit_of_numa_nodes(changes: Changes) -> None:
    """An author takes 0 for "no limit"."""
    _taking(changes, lambda text: 1 << 62 if _number(text) == 0 else None)


@seeds("TOPO-ERROR-007")
def fewer_than_eight_numa_nodes_count_as_eight(changes: Changes) -> None:
    """An author raises the number to the least one instead of refusing it."""

    def raised(text: str) -> int | None:
        most = _number(text)
        return _LEAST if most is not None and 0 < most < _LEAST else None

    _taking(changes, raised)


@seeds("TOPO-ERROR-007")
def negative_numbers_of_numa_nodes_are_passed_over(changes: Changes) -> None:
    """An author compares the least number with a positive one only."""
    _taking(changes, lambda text: _LEAST if (_number(text) or 0) < 0 else None)


@seeds("TOPO-ERROR-008")
def true_lifts_the_limit_of_numa_nodes(changes: Changes) -> None:
    """An author follows the documentation, which sets the option to true."""
    _taking(changes, lambda text: 1 << 62 if text == "true" else None)


@seeds("TOPO-ERROR-008")
def numbers_of_numa_nodes_may_exceed_64_bits(changes: Changes) -> None:
    """An author's language has integers of any size."""
    _taking(changes, lambda text: 1 << 62 if re.fullmatch("[+]?[0-9]{19,}", text) else None)


@seeds("TOPO-ERROR-008")
def numbers_of_numa_nodes_may_have_blanks_and_fractions(changes: Changes) -> None:
    """An author reads the beginning of a number, or a float."""

    def lenient(text: str) -> int | None:
        match = re.fullmatch(r"\s*([0-9]{1,9})(\.[0-9]*)?\s*", text)
        return int(match[1]) if match and int(match[1]) >= _LEAST else None

    _taking(changes, lenient)


# Feature gates


@seeds("TOPO-ERROR-009", kubernetes="1.35")
def options_behind_a_closed_gate_are_passed_over(changes: Changes) -> None:
    """An author ignores options where their gate is off."""

    def load(original: Any, given: Any, enabled: Any, *rest: Any) -> Any:
        with suppress(ConfigError):  # a gate that is locked, for one
            if enabled(given).get(_GATE) is False:
                given = {name: value for name, value in given.items() if name != _OPTIONS}
        return original(given, enabled, *rest)

    changes.around(configuration, "load", load)


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


@seeds("TOPO-ERROR-009", kubernetes="1.34")
def the_gate_of_options_closes_only_unstable_ones(changes: Changes) -> None:
    """An author lets stable options pass, whatever the gate of all options."""

    def check(original: Any, given: Any, on: Any) -> None:
        if given is None or on[_GATE] or set(given) - {topology_options.CLOSEST}:
            original(given, on)

    changes.around(topology_options, "check_gate", check)


def _maturing(changes: Changes, matured: Callable[[str, Any, Any], Any]) -> None:
    """Lets `matured` say how mature an option is: by its name, its maturity and the gates."""

    def check(original: Any, name: str, available: Any, on: Any, *rest: Any) -> None:
        if name in available:
            available = {**available, name: matured(name, available[name], on)}
        original(name, available, on, *rest)

    changes.around(topology_options, "check_available", check)


@seeds("TOPO-ERROR-010", kubernetes="1.34")
def beta_options_need_no_gate(changes: Changes) -> None:
    """An author hides alpha options only, as beta ones are on by default."""
    _maturing(changes, lambda _, maturity, on: "stable" if maturity == "beta" else maturity)


@seeds("TOPO-ERROR-010", kubernetes="1.31")
def the_closest_nodes_need_no_gate_before_they_are_stable(changes: Changes) -> None:
    """An author knows the maturity of the newest release, and applies it to all."""
    _maturing(
        changes,
        lambda name, maturity, on: "stable" if name == topology_options.CLOSEST else maturity,
    )


@seeds("TOPO-ERROR-010", kubernetes="1.31")
def beta_options_need_the_gate_of_alpha_ones(changes: Changes) -> None:
    """An author has one gate for all that is not stable."""
    _maturing(changes, lambda _, maturity, on: "alpha" if maturity == "beta" else maturity)


@seeds("TOPO-ERROR-010")
def the_stable_closest_nodes_need_the_gate_of_beta_options(changes: Changes) -> None:
    """An author follows the document, which ties the option to that gate."""
    _maturing(
        changes,
        lambda name, maturity, on: "beta" if name == topology_options.CLOSEST else maturity,
    )


@seeds("TOPO-ERROR-010")
def the_stable_number_of_nodes_needs_the_gate_of_beta_options(changes: Changes) -> None:
    """An author missed that the option became stable in 1.35."""
    _maturing(
        changes,
        lambda name, maturity, on: "beta" if name == topology_options.MOST_NODES else maturity,
    )


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


@seeds("TOPO-ERROR-011")
def single_numa_node_does_without_distances(changes: Changes) -> None:
    """An author checks distances where they are used, and one node has no distance to others."""
    _far(changes, lambda name, rows: name == policies.SINGLE_NUMA_NODE)


@seeds("TOPO-ERROR-011")
def machines_without_distances_are_taken_for_even(changes: Changes) -> None:
    """An author takes all nodes for equally close where nothing is reported."""
    _far(changes, lambda name, rows: all(row is None for row in rows.values()))
