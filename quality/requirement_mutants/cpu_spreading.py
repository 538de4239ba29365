"""Mutants of the options that spread CPUs over nodes, sockets, cores and caches."""

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
from numaproof.reference.topology.hints import Demand, TopologyHint, sets_of
from quality.requirement_mutants.cpu_options import add_early, allocating, matures, with_options
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numaproof.reference.cpu.topology import CPUTopology, Groups
    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-spreading")


# Cores and caches


def _without(changes: Changes, which: Callable[[PodContainer], bool], **options_off: bool) -> None:
    """Turns options off for containers selected by `which`."""
    allocating(
        changes,
        lambda policy, pod, container: (
            with_options(policy, **options_off) if which(container) else policy
        ),
    )


# distribute-cpus-across-cores


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.30").of(add_early, options.ACROSS_CORES)
def spreading_over_cores_comes_a_release_early() -> None:
    """Adds distribute-cpus-across-cores one release early."""


@seeds("CPU-OPT-DISTCORES-001", kubernetes="1.31").of(matures, options.ACROSS_CORES, None)
def spreading_over_cores_comes_a_release_late() -> None:
    """Adds distribute-cpus-across-cores one release late."""


@seeds("CPU-OPT-DISTCORES-001").of(matures, options.ACROSS_CORES, "beta")
def spreading_over_cores_is_visible_by_default() -> None:
    """Makes distribute-cpus-across-cores beta."""


@shape(Assignment, "pack")
def _not_spread(when: Change, rule: Any, self: Any, available: int, count: int) -> Any:
    """Packs CPUs despite distribute-cpus-across-cores if `when` is true."""
    if self.options.across_cores and when(self, available, count):
        packed = replace(self.options, across_cores=False)
        self = replace(self, options=packed)
    return rule(self=self)


@seeds("CPU-OPT-DISTCORES-002").by(_not_spread)
def cores_are_spread_over_while_none_is_in_use(self: Any, available: int, _count: int) -> Any:
    """Stops spreading after the first core is in use."""
    used = self.topology.cpus & ~available
    return used.bit_count() > self.topology.cpus_per_core


@seeds("CPU-OPT-DISTCORES-002").by(_without, across_cores=False)
def init_containers_fill_cores(container: PodContainer) -> Any:
    """Packs the CPUs of init containers."""
    return container.runs_to_completion


@seeds("CPU-OPT-DISTCORES-002").by(_without, across_cores=False)
def sidecars_fill_cores(container: PodContainer) -> Any:
    """Packs the CPUs of sidecars."""
    return container.sidecar


@shape(Assignment, "pack")
def _short_of_cores(cores: Change, rule: Any, self: Any, available: int, count: int) -> Any:
    """Rejects requests for more CPUs than the number of cores that `cores` returns."""
    if self.options.across_cores and count > cores(self, available):
        raise NotEnoughCPUsError(count, available.bit_count())
    return rule()


@seeds("CPU-OPT-DISTCORES-003").by(_short_of_cores)
def request_for_more_cpus_than_cores_is_refused(self: Assignment, available: int) -> Any:
    """Rejects requests for more CPUs than there are cores."""
    return sum(1 for core in self.topology.cores.values() if core & available)


# Availability of prefer-align-cpus-by-uncorecache


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.31").of(add_early, options.BY_UNCORE)
def uncore_option_comes_a_release_early() -> None:
    """Adds prefer-align-cpus-by-uncorecache one release early."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.32").of(matures, options.BY_UNCORE, None)
def uncore_option_comes_a_release_late() -> None:
    """Adds prefer-align-cpus-by-uncorecache one release late."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.33").of(matures, options.BY_UNCORE, "beta")
def uncore_option_is_beta_a_release_early() -> None:
    """Makes prefer-align-cpus-by-uncorecache beta one release early."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.34").of(matures, options.BY_UNCORE, "alpha")
def uncore_option_is_beta_a_release_late() -> None:
    """Makes prefer-align-cpus-by-uncorecache beta one release late."""


@seeds("CPU-OPT-UNCORE-001", kubernetes="1.35").of(matures, options.BY_UNCORE, "stable")
def uncore_option_is_stable_a_release_early() -> None:
    """Makes prefer-align-cpus-by-uncorecache stable one release early."""


@seeds("CPU-OPT-UNCORE-001").of(matures, options.BY_UNCORE, "beta")
def uncore_option_stays_beta() -> None:
    """Keeps prefer-align-cpus-by-uncorecache beta, as documented."""


# One uncore cache


@shape(Assignment, "uncore_caches")
def _among_caches(fits: Change, rule: Any, self: Any, progress: PartialAssignment) -> Any:
    """Considers only uncore caches for which `fits` is true."""
    seen = 0
    for cache in self.topology.uncores.values():
        if fits(self, progress, cache):
            seen |= cache & progress.free
    found = rule(progress=progress._replace(free=seen))
    return found._replace(free=progress.free & ~found.taken_cpus)


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def only_idle_uncore_caches_are_shared(self: Any, progress: Any, cache: Any) -> Any:
    """Aligns only to unused uncore caches."""
    return not cache & ~progress.free


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def uncore_cache_with_just_enough_cpus_is_passed_over(_self: Any, progress: Any, cache: Any) -> Any:
    """Skips uncore caches with exactly as many free CPUs as requested."""
    return (
        cache & progress.free
    ).bit_count() != progress.remaining_count or not cache & ~progress.free


@seeds("CPU-OPT-UNCORE-002").by(_among_caches)
def only_the_fullest_uncore_cache_is_looked_at(self: Assignment, progress: Any, cache: int) -> bool:
    """Considers only the fullest uncore cache."""
    if progress.remaining_count >= self.topology.cpus_per_uncore:
        return True
    first, *_ = self.caches_in_order(progress.free)
    return self.topology.uncores[first] == cache


@seeds("CPU-OPT-UNCORE-002").by(_without, by_uncore=False)
def init_containers_are_not_kept_to_an_uncore_cache(container: PodContainer) -> Any:
    """Doesn't align init containers to uncore caches."""
    return container.runs_to_completion


@seeds("CPU-OPT-UNCORE-002").by(_without, by_uncore=False)
def sidecars_are_not_kept_to_an_uncore_cache(container: PodContainer) -> Any:
    """Doesn't align sidecars to uncore caches."""
    return container.sidecar


# Several uncore caches


@seeds("CPU-OPT-UNCORE-003").around(Assignment, "uncore_caches")
def rest_beside_whole_uncore_caches_is_packed(rule: Any, self: Any, progress: Any) -> Any:
    """Packs what remains after whole uncore caches."""
    size = self.topology.cpus_per_uncore
    if progress.remaining_count <= size:
        return rule()
    order = self.caches_in_order(progress.free)
    groups = self.topology.uncores
    whole = [groups[cache] for cache in order if not groups[cache] & ~progress.free]
    return progress.take_units(whole)


# Requests that can't be aligned


@shape(Assignment, "uncore_caches", Changes.after)
def _refuse_unaligned(
    when: Change, new_progress: Any, self: Any, progress: PartialAssignment
) -> Any:
    """Rejects requests that uncore caches can't satisfy if `when` is true."""
    if new_progress.remaining_count > 0 and when(self, progress):
        raise NotEnoughCPUsError(progress.remaining_count, progress.free.bit_count())
    return new_progress


@seeds("CPU-OPT-UNCORE-004").by(_refuse_unaligned)
def requests_that_fit_no_uncore_cache_any_more_are_refused(self: Assignment, progress: Any) -> Any:
    """Rejects small requests that fit in no uncore cache."""
    return progress.remaining_count <= self.topology.cpus_per_uncore


@seeds("CPU-OPT-UNCORE-004").by(_refuse_unaligned)
def large_requests_that_uncore_caches_cannot_meet_are_refused(self: Any, progress: Any) -> Any:
    """Rejects large requests that whole caches and part of another can't satisfy."""
    return progress.remaining_count > self.topology.cpus_per_uncore


# Odd requests and half-used cores


@seeds("CPU-OPT-UNCORE-005").around(Assignment, "uncore_caches")
def odd_requests_are_not_kept_to_an_uncore_cache(rule: Any, self: Any, progress: Any) -> Any:
    """Doesn't align requests that aren't multiples of a core."""
    return progress if bool(progress.remaining_count % self.topology.cpus_per_core) else rule()


@seeds("CPU-OPT-UNCORE-005").by(_among_caches)
def odd_requests_need_room_for_a_whole_core_more(self: Any, progress: Any, cache: int) -> Any:
    """Rounds requests up to whole cores when looking for an uncore cache with room."""
    size, wanted = self.topology.cpus_per_core, progress.remaining_count
    if wanted % size == 0 or wanted >= self.topology.cpus_per_uncore:
        return True
    return (cache & progress.free).bit_count() >= -(-wanted // size) * size


@seeds("CPU-OPT-UNCORE-006").by(_among_caches)
def half_used_cores_do_not_count_as_room_in_an_uncore_cache(
    self: Assignment, progress: PartialAssignment, cache: int
) -> bool:
    """Counts only free cores as room in an uncore cache."""
    free = self.topology.complete_cores(cache & progress.free).bit_count()
    return (
        progress.remaining_count >= self.topology.cpus_per_uncore
        or free >= progress.remaining_count
    )


# Machines without uncore caches


def _replace_uncore_groups(changes: Changes, groups: Callable[[CPUTopology], Groups]) -> None:
    """Replaces missing uncore caches with other groups of CPUs."""

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
    """Aligns to NUMA nodes if there are no uncore caches."""


@seeds("CPU-OPT-UNCORE-007").of(_replace_uncore_groups, lambda topology: {0: topology.cpus})
def machine_without_uncore_caches_has_one() -> None:
    """If there are no uncore caches, treats all CPUs as sharing one."""


@seeds("CPU-OPT-UNCORE-007").of(_replace_uncore_groups, lambda topology: topology.cores)
def cores_stand_in_for_uncore_caches() -> None:
    """Aligns to cores if there are no uncore caches."""


# Nodes


MAX_TRIED = 64
"""How many combinations of NUMA nodes are tried."""


# Availability of distribute-cpus-across-numa


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.30").of(matures, options.ACROSS_NUMA, None)
def distributing_is_unknown_while_alpha() -> None:
    """Refuses distribute-cpus-across-numa while it is alpha."""


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.32").of(matures, options.ACROSS_NUMA, "beta")
def distributing_becomes_beta_a_release_early() -> None:
    """Makes distribute-cpus-across-numa beta one release early."""


@seeds("CPU-OPT-DISTNUMA-001", kubernetes="1.33").of(matures, options.ACROSS_NUMA, "alpha")
def distributing_becomes_beta_a_release_late() -> None:
    """Makes distribute-cpus-across-numa beta one release late."""


@seeds("CPU-OPT-DISTNUMA-001").of(matures, options.ACROSS_NUMA, "alpha")
def distributing_stays_alpha() -> None:
    """Keeps distribute-cpus-across-numa alpha."""


@seeds("CPU-OPT-DISTNUMA-001").of(matures, options.ACROSS_NUMA, "stable")
def distributing_needs_no_gate() -> None:
    """Makes distribute-cpus-across-numa stable."""


# Even distribution


@shape(DistributedAssignment, "take")
def _pack(when: Change, rule: Any, self: Any, available: int, count: int, min_nodes: int) -> Any:
    """Packs a request instead of distributing it if `when` is true."""
    if count > 0 and when(self, available, count, min_nodes):
        return self.pack(available, count)
    return rule()


@seeds("CPU-OPT-DISTNUMA-002").by(_pack)
def distributing_ends_with_the_first_node_in_use(
    self: DistributedAssignment, available: int, _count: int, _least: int
) -> bool:
    """Distributes only if at least half of the nodes are entirely free."""
    nodes = self.topology.nodes.values()
    return sum(not cpus & ~available for cpus in nodes) < len(nodes) // 2


@seeds("CPU-OPT-DISTNUMA-002")
def requests_with_an_affinity_are_packed_within_it(changes: Changes) -> None:
    """Packs requests that have an affinity."""
    _pack(changes, lambda self, available, count, least: least > 1)


@seeds("CPU-OPT-DISTNUMA-003").after(DistributedAssignment, "sizes")
def request_as_large_as_a_free_node_is_spread(sizes: Any, request: CPURequest) -> Any:
    """Distributes a request that exactly fits on a node."""
    if max(request.free.values(), default=0) == request.cpu_count and len(sizes) > 1:
        return [size for size in sizes if size > 1]
    return sizes


# Remainders


@shape(DistributedAssignment, "best_over", Changes.after)
def _remainder(
    order: Change, node_distribution: Any, request: CPURequest, nodes: tuple[int, ...]
) -> Any:
    """Takes the remainder of an even split from the first nodes in `order`."""
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
    """Takes the remainder from the lowest nodes."""


@seeds("CPU-OPT-DISTNUMA-004").by(_remainder)
def remainder_comes_from_the_fullest_nodes(
    request: CPURequest, node_distribution: Distribution
) -> Any:
    """Takes the remainder from the fullest nodes."""
    return sorted(node_distribution.nodes, key=lambda node: request.free[node])


# Without an even distribution


def _shared_by_some(self: Any, available: int, count: int) -> bool:
    """Returns whether some nodes can provide equal shares of a request."""
    group = self.cpus_per_core if self.options.full_cores else 1
    order = nodes_in_order(self.topology, available)
    free = {node: (self.topology.nodes[node] & available).bit_count() for node in order}
    request = CPURequest(free, count, group)
    return count % group == 0 and bool(self.choose(request, self.sizes(request, 0)))


@seeds("CPU-OPT-DISTNUMA-005").around(DistributedAssignment, "take")
def request_that_no_nodes_share_is_refused(rule: Any, self: Any, available: int, count: int) -> Any:
    """Rejects requests that can't be distributed."""
    if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
        raise NotEnoughCPUsError(count, available.bit_count())
    return rule()


@seeds("CPU-OPT-DISTNUMA-005").around(DistributedAssignment, "take")
def request_that_no_nodes_share_takes_the_lowest_cpus(
    rule: Any, self: Any, available: int, count: int
) -> Any:
    """Takes the lowest free CPUs if a request can't be distributed."""
    if 0 < count <= available.bit_count() and not _shared_by_some(self, available, count):
        chosen = 0
        for _ in range(count):
            free = available & ~chosen
            chosen |= free & -free
        return chosen
    return rule()


# Whole cores


def _in_groups(changes: Changes, size: int) -> None:
    """Distributes groups of `size` CPUs if full-pcpus-only is on."""

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
    """Distributes pairs of CPUs on cores with four threads."""


@seeds("CPU-OPT-DISTNUMA-007").around(StaticCPUPolicy, "allocate")
def uneven_request_beside_broken_cores_is_an_accounting_error(
    rule: Any, self: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Rejects uneven requests on machines with broken cores instead of looping forever."""
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
    """Rejects requests with too many combinations of NUMA nodes."""
    tried = sum(math.comb(len(request.free), size) for size in sizes)
    if self.options.full_cores and tried > MAX_TRIED:
        raise AccountingError("accounting error, too many combinations of NUMA nodes")
    return sizes


# Equally balanced distributions


def _single(number: float) -> float:
    """Rounds a number to single precision."""
    value: float = struct.unpack("f", struct.pack("f", number))[0]
    return value


@seeds("CPU-OPT-DISTNUMA-008").replace(distribution, "standard_deviation")
def balance_is_not_rounded(values: Iterable[int]) -> float:
    """Compares standard deviations without rounding them."""
    mean, squares = 0.0, 0.0
    for place, number in enumerate(values, start=1):
        before = _single(number - mean)
        mean = _single(mean + _single(before / place))
        squares = _single(squares + _single(before * _single(number - mean)))
    return squares


# Availability


@seeds("CPU-OPT-ALIGNSOCKET-001").of(matures, options.BY_SOCKET, "beta")
def aligning_by_socket_is_visible_by_default() -> None:
    """Makes align-by-socket beta."""


@seeds("CPU-OPT-ALIGNSOCKET-001", kubernetes="1.30").of(matures, options.BY_SOCKET, "stable")
def aligning_by_socket_needs_no_gate_in_old_releases() -> None:
    """Makes align-by-socket stable in old releases."""


@seeds("CPU-OPT-ALIGNSOCKET-001").of(matures, options.BY_SOCKET, None)
def aligning_by_socket_is_gone() -> None:
    """Removes align-by-socket."""


# Preferred hints


@shape(Demand, "prefers")
def _preferring(prefers: Change, rule: Any, self: Demand, nodes: int, fewest: int) -> Any:
    """Lets `prefers` decide which hints are preferred if align-by-socket is on."""
    if not self.sockets or not self.per_socket or nodes.bit_count() == fewest:
        return rule()
    return prefers(self, nodes, fewest)


def _touched_sockets(demand: Demand, nodes: int) -> list[int]:
    """Returns the sockets, as sets of nodes, that a set of nodes touches."""
    return [socket for socket in demand.sockets if socket & nodes]


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def only_hints_on_one_socket_are_aligned(self: Demand, nodes: int, fewest: int) -> Any:
    """Prefers only hints on a single socket."""
    return len(_touched_sockets(self, nodes)) == 1


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def only_whole_sockets_are_aligned(self: Demand, nodes: int, fewest: int) -> bool:
    """Prefers only hints that contain whole sockets."""
    touched = _touched_sockets(self, nodes)
    return union(touched) == nodes and len(touched) == -(-fewest // self.per_socket)


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def sockets_needed_are_rounded_down(self: Demand, nodes: int, fewest: int) -> bool:
    """Rounds the number of needed sockets down."""
    return len(_touched_sockets(self, nodes)) == max(1, fewest // self.per_socket)


@seeds("CPU-OPT-ALIGNSOCKET-002").by(_preferring)
def sockets_needed_are_those_of_free_nodes(self: Demand, nodes: int, fewest: int) -> bool:
    """Counts the needed sockets with the CPUs that are free now, not on an empty machine."""
    now = next(one.bit_count() for one in sets_of(self.nodes) if self.met_by(one))
    return len(_touched_sockets(self, nodes)) == -(-now // self.per_socket)


# Aligned CPUs


@seeds("CPU-OPT-ALIGNSOCKET-003").around(StaticCPUPolicy, "aligned_cpus")
def only_the_first_socket_of_the_affinity_is_near(rule: Any, self: Any, affinity: Any) -> Any:
    """Extends only the first node of the affinity to its socket."""
    first = affinity._replace(nodes=affinity.nodes & -affinity.nodes)
    return rule(affinity=first if self.options.by_socket else affinity)


@seeds("CPU-OPT-ALIGNSOCKET-003").around(StaticCPUPolicy, "aligned_cpus")
def sockets_are_near_an_affinity_of_one_node_alone(
    rule: Any, self: Any, affinity: TopologyHint
) -> Any:
    """Extends an affinity to its sockets only if it is a single node."""
    nodes = affinity.numa
    if nodes is None or len(nodes) == 1:
        return rule()
    return union(self.topology.nodes.get(node, 0) for node in nodes)


# When the option doesn't apply


def _skip_validation(changes: Changes, when: Callable[..., bool]) -> None:
    """Skips the option's validation if `when` is true for the machine and policy."""

    def validate(rule: Any, options: Any, topology: Any, topology_policy: str) -> None:
        if options.by_socket and when(topology, topology_policy):
            return
        rule()

    changes.around(options, "validate", validate)


@seeds("CPU-OPT-ALIGNSOCKET-004").around(options, "validate")
def aligning_by_socket_goes_with_single_numa_node(rule: Any, topology_policy: str) -> None:
    """Accepts align-by-socket with single-numa-node."""
    rule(topology_policy="restricted" if topology_policy == "single-numa-node" else topology_policy)


@seeds("CPU-OPT-ALIGNSOCKET-005").by(_skip_validation)
def more_sockets_than_nodes_are_refused_on_one_node_alone(topology: Any, policy: Any) -> Any:
    """Accepts more sockets than NUMA nodes unless there is only one node."""
    return policy != "single-numa-node" and topology.socket_count > len(topology.nodes) > 1


# On one socket


@seeds("CPU-OPT-ALIGNSOCKET-006").around(DistributedAssignment, "on_one_socket")
def distributing_stays_on_one_socket_as_far_as_two_nodes(rule: Any, nodes: Any) -> Any:
    """Checks only whether the first two nodes are on one socket."""
    return rule(nodes=tuple(nodes)[:2])


# The share of a node with too few CPUs


def _sharing(changes: Changes, when: Callable[[Any, CPURequest, Sequence[int]], bool]) -> None:
    """Lets a node with too few CPUs lower the share only if `when` is true."""

    def share(node_share: Any, self: Any, request: CPURequest, nodes: Sequence[int]) -> Any:
        if node_share == request.even_share(nodes) or when(self, request, nodes):
            return node_share
        return None

    changes.after(DistributedAssignment, "share", share)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def nodes_with_too_few_cpus_are_no_choice_by_socket(changes: Changes) -> None:
    """Never lowers shares, as without align-by-socket."""
    _sharing(changes, lambda self, request, nodes: False)


@seeds("CPU-OPT-ALIGNSOCKET-007")
def shares_are_lowered_on_several_sockets_alone(changes: Changes) -> None:
    """Lowers shares only across sockets."""
    _sharing(changes, lambda self, request, nodes: not self.on_one_socket(nodes))
