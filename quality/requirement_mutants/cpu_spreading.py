"""Violators of options that spread CPUs over nodes, sockets, cores and caches."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import operations
from numaproof.reference.cpu import distribution, options
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.assignment import (
    Assignment,
    NotEnoughCPUsError,
    PartialAssignment,
    nodes_in_order,
)
from numaproof.reference.cpu.distribution import (
    AccountingError,
    CPURequest,
    DistributedAssignment,
    Distribution,
)
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.topology.hints import Demand, TopologyHint
from quality.requirement_mutants.cpu_options import add_early, allocating, matures, with_options
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numaproof.reference.cpu.topology import CPUTopology, Groups
    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-spreading")


# Cores and caches


def _without(changes: Changes, which: Callable[[PodContainer], bool], **options_off: bool) -> None:
    """Allocates for these containers as if the options were off."""
    allocating(
        changes,
        lambda policy, pod, container: (
            with_options(policy, **options_off) if which(container) else policy
        ),
    )


# distribute-cpus-across-cores


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.30").of(add_early, options.ACROSS_CORES)
def spreading_over_cores_comes_a_release_early() -> None:
    """Has all alpha options in every release."""


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.31").of(matures, options.ACROSS_CORES, None)
def spreading_over_cores_comes_a_release_late() -> None:
    """Lacks the option in the first release that has it."""


@seeds("CPU-OPT-DISTCORES-001").of(matures, options.ACROSS_CORES, "beta")
def spreading_over_cores_is_visible_by_default() -> None:
    """Takes an option that has been there for years for a beta one."""


@shape(Assignment, "pack")
def _not_spread(when: Change, rule: Any, self: Any, available: int, count: int) -> Any:
    """Packs cores although they are to be spread over, if `when` says so."""
    if self.options.across_cores and when(self, available, count):
        packed = replace(self.options, across_cores=False)
        self = replace(self, options=packed)
    return rule(self=self)


@seeds("CPU-OPT-DISTCORES-002").by(_not_spread)
def cores_are_spread_over_while_none_is_in_use(self: Any, available: int, _count: int) -> Any:
    """Spreads only on an idle node."""
    used = self.topology.cpus & ~available
    return used.bit_count() > self.topology.cpus_per_core


@seeds("CPU-OPT-DISTCORES-002").by(_without, across_cores=False)
def init_containers_fill_cores(container: PodContainer) -> Any:
    """Spreads only app containers over cores."""
    return container.runs_to_completion


@seeds("CPU-OPT-DISTCORES-002").by(_without, across_cores=False)
def sidecars_fill_cores(container: PodContainer) -> Any:
    """Keeps helpers together, away from the app."""
    return container.sidecar


@shape(Assignment, "pack")
def _short_of_cores(cores: Change, rule: Any, self: Any, available: int, count: int) -> Any:
    """Refuses a request for more CPUs than there are cores that count."""
    if self.options.across_cores and count > cores(self, available):
        raise NotEnoughCPUsError(count, available.bit_count())
    return rule()


@seeds("CPU-OPT-DISTCORES-003").by(_short_of_cores)
def request_for_more_cpus_than_cores_is_refused(self: Assignment, available: int) -> Any:
    """Gives each CPU a core of its own, or nothing."""
    return sum(1 for core in self.topology.cores.values() if core & available)


# Availability of prefer-align-cpus-by-uncorecache


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.31").of(add_early, options.BY_UNCORE)
def uncore_option_comes_a_release_early() -> None:
    """Has all alpha options in every release."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.32").of(matures, options.BY_UNCORE, None)
def uncore_option_comes_a_release_late() -> None:
    """Lacks the option in the first release that has it."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.33").of(matures, options.BY_UNCORE, "beta")
def uncore_option_is_beta_a_release_early() -> None:
    """Has it mature together with strict-cpu-reservation."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.34").of(matures, options.BY_UNCORE, "alpha")
def uncore_option_is_beta_a_release_late() -> None:
    """Keeps the option alpha after it became beta."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.35").of(matures, options.BY_UNCORE, "stable")
def uncore_option_is_stable_a_release_early() -> None:
    """Has it stable together with strict-cpu-reservation."""


@seeds("CPU-OPT-UNCORE-001").of(matures, options.BY_UNCORE, "beta")
def uncore_option_stays_beta() -> None:
    """Goes by the documents, which call it beta."""


# One uncore cache


@shape(Assignment, "uncore_caches")
def _among_caches(fits: Change, rule: Any, self: Any, progress: PartialAssignment) -> Any:
    """Looks for the CPUs in those uncore caches alone of which `fits` says so."""
    seen = 0
    for cache in self.topology.uncores.values():
        if fits(self, progress, cache):
            seen |= cache & progress.free
    found = rule(progress=progress._replace(free=seen))
    return found._replace(free=progress.free & ~found.taken_cpus)


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def only_idle_uncore_caches_are_shared(self: Any, progress: Any, cache: Any) -> Any:
    """Aligns to caches that nobody else uses."""
    return not cache & ~progress.free


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def uncore_cache_with_just_enough_cpus_is_passed_over(_self: Any, progress: Any, cache: Any) -> Any:
    """Requires more free CPUs than are asked for."""
    return (
        cache & progress.free
    ).bit_count() != progress.remaining_count or not cache & ~progress.free


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def only_the_fullest_uncore_cache_is_looked_at(self: Assignment, progress: Any, cache: int) -> bool:
    """Tries the best fit by free CPUs, and gives up if it is too small."""
    if progress.remaining_count >= self.topology.cpus_per_uncore:
        return True
    first, *_ = self.caches_in_order(progress.free)
    return self.topology.uncores[first] == cache


@seeds("CPU-OPT-UNCORE-002").by(_without, by_uncore=False)
def init_containers_are_not_kept_to_an_uncore_cache(container: PodContainer) -> Any:
    """Aligns what runs for long."""
    return container.runs_to_completion


@seeds("CPU-OPT-UNCORE-002").by(_without, by_uncore=False)
def sidecars_are_not_kept_to_an_uncore_cache(container: PodContainer) -> Any:
    """Aligns app containers."""
    return container.sidecar


# Several uncore caches


@seeds("CPU-OPT-UNCORE-003").around(Assignment, "uncore_caches")
def rest_beside_whole_uncore_caches_is_packed(rule: Any, self: Any, progress: Any) -> Any:
    """Takes whole caches, and has the default pack what is left."""
    size = self.topology.cpus_per_uncore
    if progress.remaining_count <= size:
        return rule()
    order = self.caches_in_order(progress.free)
    groups = self.topology.uncores
    whole = [groups[cache] for cache in order if not groups[cache] & ~progress.free]
    return progress.take_units(whole)


# Requests that cannot be aligned


@shape(Assignment, "uncore_caches", Changes.after)
def _refuse_unaligned(
    when: Change, new_progress: Any, self: Any, progress: PartialAssignment
) -> Any:
    """Refuses what uncore caches leave to be packed, if `when` says so of the request."""
    if new_progress.remaining_count > 0 and when(self, progress):
        raise NotEnoughCPUsError(progress.remaining_count, progress.free.bit_count())
    return new_progress


@seeds("CPU-OPT-UNCORE-004").by(_refuse_unaligned)
def requests_that_fit_no_uncore_cache_any_more_are_refused(self: Assignment, progress: Any) -> Any:
    """Waits until a cache has room again."""
    return progress.remaining_count <= self.topology.cpus_per_uncore


@seeds("CPU-OPT-UNCORE-004").by(_refuse_unaligned)
def large_requests_that_uncore_caches_cannot_meet_are_refused(self: Any, progress: Any) -> Any:
    """Requires whole caches and one part of a cache, or nothing."""
    return progress.remaining_count > self.topology.cpus_per_uncore


# Odd requests, and half-used cores


@seeds("CPU-OPT-UNCORE-005").around(Assignment, "uncore_caches")
def odd_requests_are_not_kept_to_an_uncore_cache(rule: Any, self: Any, progress: Any) -> Any:
    """Counts cores, and half a core is none."""
    return progress if bool(progress.remaining_count % self.topology.cpus_per_core) else rule()


@seeds("CPU-OPT-UNCORE-005").by(_among_caches)
def odd_requests_need_room_for_a_whole_core_more(self: Any, progress: Any, cache: int) -> Any:
    """Rounds up to cores to see which cache has room."""
    size, wanted = self.topology.cpus_per_core, progress.remaining_count
    if wanted % size == 0 or wanted >= self.topology.cpus_per_uncore:
        return True
    return (cache & progress.free).bit_count() >= -(-wanted // size) * size


@seeds("CPU-OPT-UNCORE-006").by(_among_caches)
def half_used_cores_do_not_count_as_room_in_an_uncore_cache(
    self: Assignment, progress: PartialAssignment, cache: int
) -> bool:
    """Counts the cores of a cache that are free."""
    free = self.topology.complete_cores(cache & progress.free).bit_count()
    return (
        progress.remaining_count >= self.topology.cpus_per_uncore
        or free >= progress.remaining_count
    )


# Machines without uncore caches


def _replace_uncore_groups(changes: Changes, groups: Callable[[CPUTopology], Groups]) -> None:
    """Takes other groups for uncore caches where discovery reports none."""

    def derive(rule: Any, machine: Any) -> Any:
        found = rule()
        cores = [core for one in machine.topology or () for core in one.cores or ()]
        if any(core.uncore_caches for core in cores):
            return found
        return replace(found, uncores=groups(found))

    changes.around(cpu_topology, "derive", derive)
    changes.around(operations, "derive", derive)


@seeds("CPU-OPT-UNCORE-007").of(_replace_uncore_groups, lambda topology: topology.nodes)
def numa_nodes_stand_in_for_uncore_caches() -> None:
    """Takes the next larger unit for one cache."""


@seeds("CPU-OPT-UNCORE-007").of(_replace_uncore_groups, lambda topology: {0: topology.cpus})
def machine_without_uncore_caches_has_one() -> None:
    """Reads a cache id of 0 where there is none."""


@seeds("CPU-OPT-UNCORE-007").of(_replace_uncore_groups, lambda topology: topology.cores)
def cores_stand_in_for_uncore_caches() -> None:
    """Takes the cache of a core where none is shared."""


# Nodes


MAX_TRIED = 64
"""The combinations of NUMA nodes after which somebody gives up."""


# Availability of distribute-cpus-across-numa


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.30").of(matures, options.ACROSS_NUMA, None)
def distributing_is_unknown_while_alpha() -> None:
    """Starts with the release in which the option is beta."""


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.32").of(matures, options.ACROSS_NUMA, "beta")
def distributing_becomes_beta_a_release_early() -> None:
    """Shows the option by default before it is beta."""


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.33").of(matures, options.ACROSS_NUMA, "alpha")
def distributing_becomes_beta_a_release_late() -> None:
    """Has the option alpha for one release more."""


@seeds("CPU-OPT-DISTNUMA-001").of(matures, options.ACROSS_NUMA, "alpha")
def distributing_stays_alpha() -> None:
    """Goes by the table of an old document."""


@seeds("CPU-OPT-DISTNUMA-001").of(matures, options.ACROSS_NUMA, "stable")
def distributing_needs_no_gate() -> None:
    """Takes an option that is visible by default for a stable one."""


# An even spread


@shape(DistributedAssignment, "take")
def _pack(when: Change, rule: Any, self: Any, available: int, count: int, min_nodes: int) -> Any:
    """Packs a request that is to be distributed, if `when` says so."""
    if count > 0 and when(self, available, count, min_nodes):
        return self.pack(available, count)
    return rule()


@seeds("CPU-OPT-DISTNUMA-002").by(_pack)
def distributing_ends_with_the_first_node_in_use(
    self: DistributedAssignment, available: int, _count: int, _least: int
) -> bool:
    """Distributes only over nodes whose CPUs are all free."""
    nodes = self.topology.nodes.values()
    return sum(not cpus & ~available for cpus in nodes) < len(nodes) // 2


@seeds("CPU-OPT-DISTNUMA-002")
def requests_with_an_affinity_are_packed_within_it(changes: Changes) -> None:
    """Lets the Topology Manager decide about nodes alone."""
    _pack(changes, lambda self, available, count, least: least > 1)


@seeds("CPU-OPT-DISTNUMA-003").after(DistributedAssignment, "sizes")
def request_as_large_as_a_free_node_is_spread(sizes: Any, request: CPURequest) -> Any:
    """Compares with "less than" where a node is just large enough."""
    if max(request.free.values(), default=0) == request.cpu_count and len(sizes) > 1:
        return [size for size in sizes if size > 1]
    return sizes


# What is left over


@shape(DistributedAssignment, "best_over", Changes.after)
def _remainder(
    order: Change, node_distribution: Any, request: CPURequest, nodes: tuple[int, ...]
) -> Any:
    """Takes what is left over of an even split from the first nodes in `order`."""
    if node_distribution is None or not node_distribution.remainder:
        return node_distribution
    groups = (request.cpu_count - node_distribution.share * len(nodes)) // request.group
    left = [
        node
        for node in order(request, node_distribution)
        if request.free[node] - node_distribution.share >= request.group
    ]
    for count in range(min(groups, len(left)), len(left) + 1):
        taken = left[:count]
        if (
            sum((request.free[one] - node_distribution.share) // request.group for one in taken)
            >= groups
        ):
            return node_distribution._replace(remainder=tuple(taken))
    return node_distribution


@seeds("CPU-OPT-DISTNUMA-004").of(
    _remainder, lambda request, node_distribution: sorted(node_distribution.nodes)
)
def remainder_comes_from_the_lowest_nodes() -> None:
    """Hands the rest out from the first node on."""


@seeds("CPU-OPT-DISTNUMA-004").by(_remainder)
def remainder_comes_from_the_fullest_nodes(
    request: CPURequest, node_distribution: Distribution
) -> Any:
    """Fills up nodes as packing does."""
    return sorted(node_distribution.nodes, key=lambda node: request.free[node])


# Where nothing is even


def _shared_by_some(self: Any, available: int, count: int) -> bool:
    """Whether some nodes can share a request."""
    group = self.cpus_per_core if self.options.full_cores else 1
    order = nodes_in_order(self.topology, available)
    free = {node: (self.topology.nodes[node] & available).bit_count() for node in order}
    request = CPURequest(free, count, group)
    return count % group == 0 and bool(self.choose(request, self.sizes(request, 0)))


@seeds("CPU-OPT-DISTNUMA-005").around(DistributedAssignment, "take")
def request_that_no_nodes_share_is_refused(rule: Any, self: Any, available: int, count: int) -> Any:
    """Takes "evenly" for a condition."""
    if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
        raise NotEnoughCPUsError(count, available.bit_count())
    return rule()


@seeds("CPU-OPT-DISTNUMA-005").around(DistributedAssignment, "take")
def request_that_no_nodes_share_takes_the_lowest_cpus(
    rule: Any, self: Any, available: int, count: int
) -> Any:
    """Takes whatever there is once spreading has failed."""
    if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
        chosen = 0
        for _ in range(count):
            free = available & ~chosen
            chosen |= free & -free
        return chosen
    return rule()


# Whole cores


def _in_groups(changes: Changes, size: int) -> None:
    """Distributes groups of `size` CPUs where cores must be whole."""

    def take(rule: Any, self: Any) -> Any:
        if self.options.full_cores:
            topology = replace(self.topology)
            vars(topology).update(cpus_per_core=size, most_cpus_per_core=size)
            self = replace(self, topology=topology)
        return rule(self=self)

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and not self.options.across_numa

    changes.around(DistributedAssignment, "take", take)
    changes.replace(Assignment, "only_whole_cores", property(whole))


@seeds("CPU-OPT-DISTNUMA-006").of(_in_groups, 2)
def pairs_are_distributed_on_cores_of_four_threads() -> None:
    """Takes two threads for a core on every machine."""


@seeds("CPU-OPT-DISTNUMA-007").around(StaticCPUPolicy, "allocate")
def uneven_request_beside_broken_cores_is_an_accounting_error(
    rule: Any, self: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Cuts the endless loop short, and has nothing to go on with."""
    count, size = pod.exclusive_cpus(container), self.assignment.cpus_per_core
    largest = max(map(int.bit_count, self.topology.nodes.values()))
    needed = -(-count // largest)
    both = self.options.full_cores and self.options.across_numa
    broken = self.broken_cores != self.reserved
    held = state.of(pod.uid, container.name)
    if both and broken and held is None and needed > 1 and count % (needed * size):
        raise AccountingError("accounting error, the remainder does not get smaller")
    return rule()


@seeds("CPU-OPT-DISTNUMA-007").after(DistributedAssignment, "sizes")
def distribution_of_cores_gives_up_on_many_nodes(sizes: Any, self: Any, request: CPURequest) -> Any:
    """Bounds the number of combinations, and refuses beyond it."""
    tried = sum(math.comb(len(request.free), size) for size in sizes)
    if self.options.full_cores and tried > MAX_TRIED:
        raise AccountingError("accounting error, too many combinations of NUMA nodes")
    return sizes


# Equally balanced distributions


def _single(number: float) -> float:
    """A number as a single-precision one."""
    value: float = struct.unpack("f", struct.pack("f", number))[0]
    return value


@seeds("CPU-OPT-DISTNUMA-008").replace(distribution, "standard_deviation")
def balance_is_not_rounded(values: Iterable[int]) -> float:
    """Compares numbers of single precision as they come out of the sum."""
    mean, squares = 0.0, 0.0
    for place, number in enumerate(values, start=1):
        before = _single(number - mean)
        mean = _single(mean + _single(before / place))
        squares = _single(squares + _single(before * _single(number - mean)))
    return squares


# Availability


@seeds("CPU-OPT-ALIGNSOCKET-001").of(matures, options.BY_SOCKET, "beta")
def aligning_by_socket_is_visible_by_default() -> None:
    """Takes an option that has been there for years for a beta one."""


@seeds("CPU-OPT-ALIGNSOCKET-001", kubernetes="1.30").of(matures, options.BY_SOCKET, "stable")
def aligning_by_socket_needs_no_gate_in_old_releases() -> None:
    """Opens all options in releases that are older than those supported."""


@seeds("CPU-OPT-ALIGNSOCKET-001").of(matures, options.BY_SOCKET, None)
def aligning_by_socket_is_gone() -> None:
    """Leaves out an option that never leaves alpha."""


# Which hints are preferred


@shape(Demand, "prefers")
def _preferring(prefers: Change, rule: Any, self: Demand, nodes: int, fewest: int) -> Any:
    """Prefers other hints where sockets decide."""
    if not self.sockets or not self.per_socket or nodes.bit_count() == fewest:
        return rule()
    return prefers(self, nodes, fewest)


def _touched_sockets(demand: Demand, nodes: int) -> list[int]:
    """The sockets, as their nodes, that a set of nodes has part in."""
    return [socket for socket in demand.sockets if socket & nodes]


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def only_hints_on_one_socket_are_aligned(self: Demand, nodes: int, fewest: int) -> Any:
    """Handles only requests that fit on one socket."""
    return len(_touched_sockets(self, nodes)) == 1


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def only_whole_sockets_are_aligned(self: Demand, nodes: int, fewest: int) -> bool:
    """Prefers all nodes of a socket, not some of them."""
    touched = _touched_sockets(self, nodes)
    return union(touched) == nodes and len(touched) == -(-fewest // self.per_socket)


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def sockets_needed_are_rounded_down(self: Demand, nodes: int, fewest: int) -> bool:
    """Divides, and a request for three of four nodes needs one socket then."""
    return len(_touched_sockets(self, nodes)) == max(1, fewest // self.per_socket)


# Which CPUs are near


@seeds("CPU-OPT-ALIGNSOCKET-003").around(StaticCPUPolicy, "aligned_cpus")
def only_the_first_socket_of_the_affinity_is_near(rule: Any, self: Any, affinity: Any) -> Any:
    """Looks up the socket of the affinity: that of its first node."""
    first = affinity._replace(nodes=affinity.nodes & -affinity.nodes)
    return rule(affinity=first if self.options.by_socket else affinity)


@seeds("CPU-OPT-ALIGNSOCKET-003").around(StaticCPUPolicy, "aligned_cpus")
def sockets_are_near_an_affinity_of_one_node_alone(
    rule: Any, self: Any, affinity: TopologyHint
) -> Any:
    """Extends a single node to its socket, and takes more of them as they are."""
    nodes = affinity.numa
    if nodes is None or len(nodes) == 1:
        return rule()
    return union(self.topology.nodes.get(node, 0) for node in nodes)


# Where the option does not apply


def _skip_validation(changes: Changes, when: Callable[..., bool]) -> None:
    """Does not check the option against machine and policy, if `when` says so of them."""

    def validate(rule: Any, options: Any, topology: Any, topology_policy: str) -> None:
        if options.by_socket and when(topology, topology_policy):
            return
        rule()

    changes.around(options, "validate", validate)


@seeds("CPU-OPT-ALIGNSOCKET-004").around(options, "validate")
def aligning_by_socket_goes_with_single_numa_node(rule: Any, topology_policy: str) -> None:
    """Reads "not compatible" as without effect."""
    rule(topology_policy="restricted" if topology_policy == "single-numa-node" else topology_policy)


@seeds("CPU-OPT-ALIGNSOCKET-005").by(_skip_validation)
def more_sockets_than_nodes_are_refused_on_one_node_alone(topology: Any, policy: Any) -> Any:
    """Checks for machines without NUMA."""
    return policy != "single-numa-node" and topology.socket_count > len(topology.nodes) > 1


# On one socket


@seeds("CPU-OPT-ALIGNSOCKET-006").around(DistributedAssignment, "on_one_socket")
def distributing_stays_on_one_socket_as_far_as_two_nodes(rule: Any, nodes: Any) -> Any:
    """Compares the sockets of the first two nodes."""
    return rule(nodes=tuple(nodes)[:2])


# The share of a node with too few CPUs


def _sharing(changes: Changes, when: Callable[[Any, CPURequest, Sequence[int]], bool]) -> None:
    """Lets a node with too few CPUs lower the share only if `when` says so."""

    def share(node_share: Any, self: Any, request: CPURequest, nodes: Sequence[int]) -> Any:
        if node_share == request.even_share(nodes) or when(self, request, nodes):
            return node_share
        return None

    changes.after(DistributedAssignment, "share", share)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def nodes_with_too_few_cpus_are_no_choice_by_socket(changes: Changes) -> None:
    """Distributes as without align-by-socket."""
    _sharing(changes, lambda self, request, nodes: False)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def shares_are_lowered_on_several_sockets_alone(changes: Changes) -> None:
    """Takes even shares on a socket, and anything where that fails."""
    _sharing(changes, lambda self, request, nodes: not self.on_one_socket(nodes))
