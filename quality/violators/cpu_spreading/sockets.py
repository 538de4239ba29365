"""Violators of ``align-by-socket``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu import options
from numaproof.reference.cpu.distribution import CPURequest, DistributedAssignment
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.topology.hints import Demand, TopologyHint
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_options.whole_cores import matures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


seeds = SubjectBugs("cpu-spreading")


# Availability


@seeds("CPU-OPT-ALIGNSOCKET-001")
def aligning_by_socket_is_visible_by_default(changes: Changes) -> None:
    """Its author takes an option that has been there for years for a beta one."""
    matures(changes, options.BY_SOCKET, "beta")


@seeds("CPU-OPT-ALIGNSOCKET-001", kubernetes="1.30")
def aligning_by_socket_needs_no_gate_in_old_releases(changes: Changes) -> None:
    """Its author opens all options in releases that are older than those supported."""
    matures(changes, options.BY_SOCKET, "stable")


@seeds("CPU-OPT-ALIGNSOCKET-001")
def aligning_by_socket_is_gone(changes: Changes) -> None:
    """Its author leaves out an option that never leaves alpha."""
    matures(changes, options.BY_SOCKET, None)


# Which hints are preferred


def _preferring(changes: Changes, prefers: Callable[[Demand, int, int], bool]) -> None:
    """Prefers other hints where sockets decide."""

    def preferred(original: Any, self: Demand, nodes: int, fewest: int) -> Any:
        if not self.sockets or not self.per_socket or nodes.bit_count() == fewest:
            return original(self, nodes, fewest)
        return prefers(self, nodes, fewest)

    changes.around(Demand, "prefers", preferred)


def _touched(demand: Demand, nodes: int) -> list[int]:
    """The sockets, as their nodes, that a set of nodes has part in."""
    return [socket for socket in demand.sockets if socket & nodes]


@seeds("CPU-OPT-ALIGNSOCKET-002")
def only_hints_on_one_socket_are_aligned(changes: Changes) -> None:
    """Its author has requests in mind that fit on a socket."""
    _preferring(changes, lambda self, nodes, fewest: len(_touched(self, nodes)) == 1)


@seeds("CPU-OPT-ALIGNSOCKET-002")
def only_whole_sockets_are_aligned(changes: Changes) -> None:
    """Its author prefers all nodes of a socket, not some of them."""

    def whole(self: Demand, nodes: int, fewest: int) -> bool:
        touched = _touched(self, nodes)
        return union(touched) == nodes and len(touched) == -(-fewest // self.per_socket)

    _preferring(changes, whole)


@seeds("CPU-OPT-ALIGNSOCKET-002")
def sockets_needed_are_rounded_down(changes: Changes) -> None:
    """Its author divides, and a request for three of four nodes needs one socket then."""

    def rounded(self: Demand, nodes: int, fewest: int) -> bool:
        return len(_touched(self, nodes)) == max(1, fewest // self.per_socket)

    _preferring(changes, rounded)


# Which CPUs are near


@seeds("CPU-OPT-ALIGNSOCKET-003")
def only_the_first_socket_of_the_affinity_is_near(changes: Changes) -> None:
    """Its author looks up the socket of the affinity: that of its first node."""

    def aligned(original: Any, self: Any, affinity: TopologyHint) -> Any:
        first = affinity._replace(nodes=affinity.nodes & -affinity.nodes)
        return original(self, first if self.options.by_socket else affinity)

    changes.around(StaticCPUPolicy, "aligned", aligned)


@seeds("CPU-OPT-ALIGNSOCKET-003")
def sockets_are_near_an_affinity_of_one_node_alone(changes: Changes) -> None:
    """Its author extends a single node to its socket, and takes more of them as they are."""

    def aligned(original: Any, self: Any, affinity: TopologyHint) -> Any:
        nodes = affinity.numa
        if nodes is None or len(nodes) == 1:
            return original(self, affinity)
        return union(self.topology.nodes.get(node, 0) for node in nodes)

    changes.around(StaticCPUPolicy, "aligned", aligned)


# Where the option does not apply


def _unvalidated(changes: Changes, when: Callable[..., bool]) -> None:
    """Does not check the option against machine and policy, if `when` says so of them."""

    def validate(original: Any, chosen: Any, topology: Any, policy: str) -> None:
        if chosen.by_socket and when(topology, policy):
            return
        original(chosen, topology, policy)

    changes.around(options, "validate", validate)


@seeds("CPU-OPT-ALIGNSOCKET-004")
def aligning_by_socket_goes_with_single_numa_node(changes: Changes) -> None:
    """Its author reads "not compatible" as without effect."""

    def validate(original: Any, chosen: Any, topology: Any, policy: str) -> None:
        original(chosen, topology, "restricted" if policy == "single-numa-node" else policy)

    changes.around(options, "validate", validate)


@seeds("CPU-OPT-ALIGNSOCKET-005")
def more_sockets_than_nodes_are_refused_on_one_node_alone(changes: Changes) -> None:
    """Its author checks for machines without NUMA."""
    _unvalidated(
        changes,
        lambda topology, policy: (
            policy != "single-numa-node" and topology.socket_count > len(topology.nodes) > 1
        ),
    )


# On one socket


@seeds("CPU-OPT-ALIGNSOCKET-006")
def distributing_stays_on_one_socket_as_far_as_two_nodes(changes: Changes) -> None:
    """Its author compares the sockets of the first two nodes."""

    def on_one_socket(original: Any, self: Any, nodes: Any) -> Any:
        return original(self, tuple(nodes)[:2])

    changes.around(DistributedAssignment, "on_one_socket", on_one_socket)


# The share of a node with too few CPUs


def _sharing(changes: Changes, when: Callable[[Any, CPURequest, Sequence[int]], bool]) -> None:
    """Lets a node with too few CPUs lower the share only if `when` says so."""

    def share(original: Any, self: Any, request: CPURequest, nodes: Sequence[int]) -> Any:
        found = original(self, request, nodes)
        if found == request.even_share(nodes) or when(self, request, nodes):
            return found
        return None

    changes.around(DistributedAssignment, "share", share)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def nodes_with_too_few_cpus_are_no_choice_by_socket(changes: Changes) -> None:
    """Its author distributes as without align-by-socket."""
    _sharing(changes, lambda self, request, nodes: False)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def shares_are_lowered_on_several_sockets_alone(changes: Changes) -> None:
    """Its author wants even shares on a socket, and anything where that fails."""
    _sharing(changes, lambda self, request, nodes: not self.on_one_socket(nodes))
