"""Violators of the Topology Manager's policy options: ties, averages, and many nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference import startup
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.errors import StartError
from numaproof.reference.topology import distances
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.distances import UNREACHABLE, Distances
from numaproof.reference.topology.policy import TopologyPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_options.distances import (
    MOST_NODES,
    made_policy,
    with_distances,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

seeds = SubjectBugs("topology-options")


# Ties


def _tied(changes: Changes, place: Callable[[int], Any]) -> None:
    """Decides by `place` between sets that are equally close."""

    def by_average(sets: Collection[int], table: Any) -> list[int]:
        return sorted(sets, key=lambda nodes: (distances.average(nodes, table), place(nodes)))

    changes.replace(distances, "by_average", by_average)
    changes.replace(Distances, "by_table_alone", property(lambda self: False))


@seeds("TOPO-OPT-006")
def equally_close_affinity_with_the_lowest_node_wins(changes: Changes) -> None:
    """Its author compares lists of nodes, where [0, 3] comes before [1, 2]."""
    _tied(changes, lambda nodes: tuple(NUMASet.from_mask(nodes)))


@seeds("TOPO-OPT-006")
def last_of_equally_close_affinities_wins(changes: Changes) -> None:
    """Its author keeps an affinity that is no farther than the best."""
    _tied(changes, lambda nodes: -nodes)


# The distance of an affinity


def _measured(changes: Changes, measure: Callable[[tuple[int, ...], Any], float]) -> None:
    """Measures the distance of a set of nodes otherwise."""

    def average(nodes: int, table: Any) -> float:
        return measure(tuple(NUMASet.from_mask(nodes)), table)

    changes.replace(distances, "average", average)


@seeds("TOPO-OPT-007")
def distance_is_that_of_the_farthest_nodes(changes: Changes) -> None:
    """Its author takes the largest distance between two nodes."""
    _measured(
        changes, lambda nodes, table: max(table[one][other] for one in nodes for other in nodes)
    )


@seeds("TOPO-OPT-007")
def distance_is_a_whole_number(changes: Changes) -> None:
    """Its author divides integers."""
    _measured(
        changes,
        lambda nodes, table: (
            sum(table[one][other] for one in nodes for other in nodes) // len(nodes) ** 2
        ),
    )


@seeds("TOPO-OPT-007")
def distance_is_measured_from_the_first_node(changes: Changes) -> None:
    """Its author reads the row of one node."""
    _measured(
        changes,
        lambda nodes, table: sum(table[nodes[0]][other] for other in nodes) / len(nodes),
    )


@seeds("TOPO-OPT-007")
def distance_is_measured_in_one_direction(changes: Changes) -> None:
    """Its author counts each pair once, and takes tables for symmetric."""
    _measured(
        changes,
        lambda nodes, table: sum(
            table[one][other] for one in nodes for other in nodes if one <= other
        ),
    )


@seeds("TOPO-OPT-007")
def distance_leaves_nodes_themselves_out(changes: Changes) -> None:
    """Its author averages over different nodes, at the same distance from themselves."""
    _measured(
        changes,
        lambda nodes, table: sum(
            table[one][other] for one in nodes for other in nodes if one != other
        ),
    )


# Policies without sets of nodes


class MostCentral(Distances):
    """Nodes by their distances to all nodes of the machine."""

    @property
    def by_table_alone(self) -> bool:
        """Not at all: nodes outside of a set count."""
        return False

    def ordered(self, sets: Collection[int]) -> list[int]:
        """The most central first, then low ids."""
        table = self.table

        def total(nodes: int) -> int:
            return sum(sum(table[node].values()) for node in NUMASet.from_mask(nodes))

        return sorted(sets, key=lambda nodes: (total(nodes), nodes))


def _single(changes: Changes, kind: type[Distances]) -> None:
    """Has single-numa-node compare distances of a kind, where the option is on."""

    def made(original: Any, name: str, chosen: Any, rows: Any, *rest: Any) -> TopologyPolicy:
        policy: TopologyPolicy = original(name, chosen, rows, *rest)
        if not chosen.closest or not policy.rules.single:
            return policy
        return with_distances(policy, kind(dict(rows)))

    changes.around(policies, "of_nodes", made)


@seeds("TOPO-OPT-008")
def single_numa_node_takes_the_most_central_node(changes: Changes) -> None:
    """Its author finds a use for distances: the node that is closest to all others."""
    _single(changes, MostCentral)


# Node ids with gaps


@seeds("TOPO-OPT-009")
def distances_do_not_count_where_node_ids_have_gaps(changes: Changes) -> None:
    """Its author gives up where ids are no positions."""

    def change(policy: TopologyPolicy, rows: Any) -> TopologyPolicy:
        gaps = sorted(rows) != [*range(len(rows))]
        return with_distances(policy, None) if gaps else policy

    made_policy(changes, change)


@seeds("TOPO-OPT-009")
def nodes_beyond_their_number_are_unreachable(changes: Changes) -> None:
    """Its author reads a row of distances at the id of the node."""

    def table(self: Distances) -> Any:
        return {
            node: {
                other: row[other] if other < len(row) else UNREACHABLE
                for other in sorted(self.rows)
            }
            for node, row in self.rows.items()
        }

    changes.replace(Distances, "table", property(table))
    changes.replace(Distances, "by_table_alone", property(lambda self: False))


# Policy none


def _limited_none(changes: Changes, most: Callable[[Any], int]) -> None:
    """Limits nodes under policy none; `most` makes the limit of the configuration."""

    def made(original: Any, config: Any, machine: Any, release: Any) -> Any:
        found = original(config, machine, release)
        if found is None and len(machine.topology or ()) > most(config):
            raise StartError(
                "topology", f"unsupported on machines with more than {most(config)} NUMA Nodes"
            )
        return found

    changes.around(startup, "make_topology_policy", made)


@seeds("TOPO-OPT-010")
def policy_none_ends_where_a_mask_of_nodes_does(changes: Changes) -> None:
    """Its author keeps nodes in half a machine word."""
    _limited_none(changes, lambda config: 4 * MOST_NODES)


# Many nodes


@seeds("TOPO-OPT-011")
def devices_have_no_hints_on_many_nodes(changes: Changes) -> None:
    """Its author does not enumerate sets of many nodes."""

    def of_resource(original: Any, self: DeviceHints, *args: Any) -> Any:
        return None if len(self.nodes) > MOST_NODES else original(self, *args)

    changes.around(DeviceHints, "of_resource", of_resource)


@seeds("TOPO-OPT-011")
def devices_are_found_on_the_first_nodes_alone(changes: Changes) -> None:
    """Its author looks at the sets of eight nodes, and not beyond."""

    def considered(original: Any, self: DeviceHints, near: Any) -> Any:
        first = sorted(self.nodes)[:MOST_NODES]
        return tuple(node for node in original(self, near) if node in first)

    changes.around(DeviceHints, "considered", considered)


@seeds("TOPO-OPT-012")
def four_resources_on_eight_nodes_are_refused(changes: Changes) -> None:
    """Its author bounds the combinations of hints, and admits none beyond the bound."""

    def merge(original: Any, self: TopologyPolicy, providers: Any) -> Any:
        kept, admitted = original(self, providers)
        hinted = [one for one in merging.by_resource(providers) if one != merging.NO_PREFERENCE]
        many = self.rules.nodes.bit_count() >= MOST_NODES and len(hinted) >= MOST_NODES // 2
        return kept, admitted and not many

    changes.around(TopologyPolicy, "merge", merge)
