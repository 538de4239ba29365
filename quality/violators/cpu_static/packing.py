"""Violators of the requirements of the static CPU policy: which CPUs, refusals, QoS classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu import assignment, hints
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError, PartialAssignment
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import CPUTopology, union
from numaproof.reference.deviations import assignment as deviations
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-static")


def _cores_in_order(changes: Changes, change: Callable[[CPUTopology, int, list[int]], Any]) -> None:
    """Lets `change` put the cores in another order, wherever it is asked for."""
    for user in (assignment, deviations):
        changes.around(
            user,
            "cores_in_order",
            lambda original, topology, free: change(topology, free, original(topology, free)),
        )


def _place(groups: Mapping[int, int], cpus: int) -> int:
    """The mask of the first group that has one of the CPUs."""
    return next(mask for mask in groups.values() if mask & cpus)


# CPU-STATIC-008 and -012: nodes and sockets


@seeds("CPU-STATIC-008")
def sockets_of_several_nodes_are_passed_over(changes: Changes) -> None:
    """Takes whole nodes where a socket has several, and never the socket as such."""
    changes.around(
        Assignment,
        "whole_sockets",
        lambda original, self, progress: (
            original(self, progress) if self.topology.sockets_within_nodes else progress
        ),
    )


@seeds("CPU-STATIC-008")
def one_whole_socket_is_taken_at_most(changes: Changes) -> None:
    """Takes a whole socket once, and goes on with cores."""

    def one(original: Any, self: Any, progress: PartialAssignment) -> Any:
        if len(self.topology.nodes) != len(self.topology.sockets):
            return original(self, progress)
        fitting = [
            cpus for cpus in self.free_sockets(progress.free) if cpus.bit_count() <= progress.wanted
        ]
        return progress.take_units(fitting[:1])

    changes.around(
        Assignment,
        "whole_nodes",
        lambda original, self, progress: (
            progress
            if len(self.topology.nodes) == len(self.topology.sockets)
            else original(self, progress)
        ),
    )
    changes.around(Assignment, "whole_sockets", one)


@seeds("CPU-STATIC-008")
def only_multiples_of_a_socket_get_whole_sockets(changes: Changes) -> None:
    """Takes sockets for requests that are made of them, and cores for all others."""

    def multiples(original: Any, self: Any, progress: PartialAssignment) -> Any:
        size = max(cpus.bit_count() for cpus in self.topology.sockets.values())
        odd = progress.wanted % size and len(self.topology.nodes) == len(self.topology.sockets)
        return progress if odd else original(self, progress)

    changes.around(Assignment, "whole_nodes", multiples)
    changes.around(Assignment, "whole_sockets", multiples)


@seeds("CPU-STATIC-012")
def the_sockets_of_a_node_come_before_the_node(changes: Changes) -> None:
    """Takes sockets first on every machine, as the first releases did."""

    def sockets_first(original: Any, self: Any, progress: PartialAssignment) -> Any:
        if self.topology.sockets_within_nodes:
            progress = self.whole_sockets(progress)
        return original(self, progress)

    changes.around(Assignment, "whole_nodes", sockets_first)


# CPU-STATIC-009 and -010: cores and threads


def _threads(
    changes: Changes, order: Callable[[CPUTopology, int, list[int]], list[int]], *, last: bool
) -> None:
    """Takes single CPUs in another `order` of cores; of a core's, maybe the `last` ones first."""

    def threads_by_core(self: Any, progress: PartialAssignment) -> PartialAssignment:
        free = progress.free
        cores = assignment.cores_in_order(self.topology, free)
        for core in order(self.topology, free, cores):
            left = self.topology.cores[core] & free
            while left and progress.wanted > 0:
                taken = 1 << (left.bit_length() - 1) if last else left & -left
                progress, left = progress.take(taken), left & ~taken
        return progress

    changes.replace(Assignment, "threads_by_core", threads_by_core)


@seeds("CPU-STATIC-010")
def single_cpus_ignore_how_full_their_core_is(changes: Changes) -> None:
    """Sorts the cores of a socket by their numbers alone."""

    def order(topology: CPUTopology, free: int, cores: list[int]) -> list[int]:
        sockets = assignment.sockets_in_order(topology, free)
        place = {topology.sockets[socket]: rank for rank, socket in enumerate(sockets)}
        masks = topology.cores
        return sorted(cores, key=lambda one: (place[_place(topology.sockets, masks[one])], one))

    _threads(changes, order, last=False)


# CPU-STATIC-011 and -022: few NUMA nodes


@seeds("CPU-STATIC-011")
def the_nodes_of_a_socket_are_filled_at_once(changes: Changes) -> None:
    """Goes by sockets alone where these have several nodes."""

    def by_socket(topology: CPUTopology, _free: int, cores: list[int]) -> list[int]:
        if topology.sockets_within_nodes:
            return cores
        sockets, nodes = topology.sockets, topology.nodes
        order = list(dict.fromkeys(_place(sockets, topology.cores[core]) for core in cores))
        turns: dict[int, int] = {}
        keys = {}
        for core in cores:
            home = _place(nodes, topology.cores[core])
            turns[home] = turns.get(home, -1) + 1
            keys[core] = order.index(_place(sockets, topology.cores[core])), turns[home]
        return sorted(cores, key=keys.__getitem__)

    _cores_in_order(changes, by_socket)


@seeds("CPU-STATIC-022")
def a_request_beyond_a_node_takes_from_every_node(changes: Changes) -> None:
    """Spreads what does not fit into one NUMA node over all that have free CPUs."""

    def pack(original: Any, self: Any, available: int, count: int, beside: int = 0) -> Any:
        parts = [cpus & available for cpus in self.topology.nodes.values() if cpus & available]
        most = max((part.bit_count() for part in parts), default=0)
        if not most < count <= sum(part.bit_count() for part in parts):
            return original(self, available, count, beside)
        taken = 0
        for place, part in enumerate(parts):
            share = -(-(count - taken.bit_count()) // (len(parts) - place))
            taken |= original(self, part, min(share, part.bit_count()), beside)
        left = available & ~taken
        return taken | original(self, left, count - taken.bit_count(), beside)

    changes.around(Assignment, "pack", pack)


@seeds("CPU-STATIC-022")
def cores_are_taken_by_their_numbers(changes: Changes) -> None:
    """Expects neighbouring CPU numbers to be neighbours, where nodes take turns with them."""
    _cores_in_order(changes, lambda topology, free, cores: sorted(cores))


# CPU-STATIC-013: parts of cores


@seeds("CPU-STATIC-013")
def the_rest_of_a_split_core_stays_idle(changes: Changes) -> None:
    """Keeps containers from sharing a core even without full-pcpus-only."""

    def available(original: Any, self: Any, state: Any) -> Any:
        used = union(cpus for _, _, cpus in state)
        return original(self, state) & ~self.topology.whole_cores(used)

    changes.around(StaticCPUPolicy, "available", available)


# CPU-STATIC-014 and -015: what fits


def _without_room(changes: Changes, applies: Callable[[PodContainer], bool]) -> None:
    """Leaves containers in the shared pool that there are too few CPUs for."""

    def allocate(original: Any, self: Any, state: Any, pod: Pod, *rest: Any) -> Any:
        try:
            return original(self, state, pod, *rest)
        except NotEnoughCPUsError:
            if not applies(rest[0]):
                raise
            return state

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-STATIC-014")
def init_containers_without_room_stay_in_the_shared_pool(changes: Changes) -> None:
    """Lets no init container keep its pod from running."""
    _without_room(changes, lambda container: container.init)


@seeds("CPU-STATIC-015")
def all_free_cpus_at_once_fit_nowhere(changes: Changes) -> None:
    """Wants hints to leave a CPU of the machine free."""

    def for_container(
        original: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
    ) -> Any:
        fresh = state.of(pod.uid, container.name) is None and not state.reuse.of(pod.uid)
        count = pod.exclusive_cpus(container)
        if count and fresh and count == policy.available(state).bit_count():
            return hints.UNSATISFIABLE
        return original(policy, state, pod, container)

    changes.around(hints, "for_container", for_container)
