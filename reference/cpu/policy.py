"""The CPU Manager's policies: ``none`` and ``static``.

(Kubernetes documentation, "Policies for assigning CPUs to Pods".) A policy is an immutable value;
its functions take a state and give the next one. Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import assignment
from numaproof.reference.cpu.assignment import NotEnoughCPUsError, Style, packed
from numaproof.reference.cpu.distribution import distributed, of_one_socket
from numaproof.reference.cpu.state import CPUState, Reuse
from numaproof.reference.cpu.topology import touching, union
from numaproof.reference.departures import defects
from numaproof.reference.pods import budget

if TYPE_CHECKING:
    from numaproof.protocol.sets import NUMASet
    from numaproof.reference.cpu.options import StaticOptions
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.departures.releases import Release
    from numaproof.reference.pods.containers import Container
    from numaproof.reference.pods.pod import Pod


class PolicyError(Exception):
    """The policy cannot be made, or cannot start from the restored state."""


class SMTAlignmentError(Exception):
    """Whole physical cores were asked for and cannot be had."""


@dataclass(frozen=True, slots=True)
class StaticPolicy:
    """The static policy on a machine; `reserved` is never handed out exclusively.

    `broken` are the CPUs of all cores that a reserved CPU belongs to: with
    ``full-pcpus-only`` they cannot be handed out either.
    """

    topology: CPUTopology
    options: StaticOptions
    release: Release
    reserved: int = 0
    broken: int = 0

    @property
    def style(self) -> Style:
        """How assignment is to lay requests out."""
        release = self.release
        spread = (
            assignment.threads_by_number
            if release.has(defects.SPREAD_BY_CPU_NUMBER)
            else assignment.threads_of_other_cores
        )
        part = assignment.part_with_room
        if release.has(defects.HALF_USED_CORES):
            odd = release.uncore_takes_odd_requests
            part = assignment.part_with_odd if odd else assignment.part_of_cores
        return Style(
            spread=spread if self.options.across_cores else None,
            uncore=part if self.options.by_uncore else None,
            counts_twice=release.has(defects.CACHE_COUNTED_TWICE),
            overwrites=release.has(defects.COMBINATION_OVERWRITTEN),
        )

    @property
    def only_whole_cores(self) -> bool:
        """Whether nothing but whole cores is handed out, as documented for full-pcpus-only."""
        return self.options.full_cores and not self.release.has(defects.BROKEN_CORE_TAKEN)

    @property
    def cpus_per_core(self) -> int:
        """The CPUs that a request must be a multiple of with ``full-pcpus-only``."""
        if self.release.has(defects.BROKEN_CORE_TAKEN):
            return self.topology.cpus_per_core
        return self.topology.most_cpus_per_core

    @property
    def allocatable(self) -> int:
        """The CPUs that exclusive assignment may use."""
        return self.topology.cpus & ~self.reserved

    def available(self, state: CPUState) -> int:
        """The CPUs that can be assigned now."""
        free = state.shared & ~self.reserved
        return self.topology.complete_cores(free) if self.only_whole_cores else free

    def take(self, available: int, count: int, beside: int = 0, least: int = 0) -> int:
        """`count` CPUs out of `available`, laid out as the options ask.

        `beside` are CPUs that the same container has already; CPUs that are distributed go to
        `least` nodes or more, where that many can share them.

        Raises:
            NotEnoughCPUsError: `available` has fewer.
        """
        if not self.options.across_numa:
            return packed(self.topology, available, count, self.style, beside)
        group = self.cpus_per_core if self.options.full_cores else 1
        if self.options.by_socket and not self.release.has(defects.NODES_ACROSS_SOCKETS):
            available = of_one_socket(self.topology, available, count)
        style = self.style._replace(least_nodes=least)
        return distributed(self.topology, available, count, group, style)

    def check_alignment(self, count: int, free: int) -> None:
        """Checks that `count` CPUs can be whole cores, with `free` CPUs in unbroken cores.

        Raises:
            SMTAlignmentError: they cannot (option ``full-pcpus-only``).
        """
        per_core = self.cpus_per_core
        if not self.options.full_cores:
            return
        if count % per_core:
            raise SMTAlignmentError(
                f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = "
                f"{per_core}"
            )
        if count > free:
            raise SMTAlignmentError(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
                f"{free}, requested CPUs = {count}, CPUs per core = {per_core}"
            )

    def allocate(
        self,
        state: CPUState,
        reuse: Reuse,
        pod: Pod,
        container: Container,
        affinity: NUMASet | None,
    ) -> tuple[CPUState, Reuse]:
        """The state once the container has what it is due; unchanged if it already has.

        `affinity` is the Topology Manager's hint for it: its nodes are used first.

        Raises:
            SMTAlignmentError: whole cores cannot be had.
            NotEnoughCPUsError: too few CPUs are left.
        """
        count = pod.exclusive_cpus(container)
        if count == 0:
            return state, reuse
        cpus = state.of(pod.uid, container.name)
        if cpus is None and self._has_ended(state, pod, container):
            return state, reuse
        if cpus is None or self.release.has(defects.OWN_POD_REFUSED):
            self.check_alignment(count, self._in_unbroken_cores(state, reuse.of(pod.uid)))
        if cpus is None:
            cpus = self._choose(state, count, reuse.of(pod.uid), affinity)
            state = state.assign(pod.uid, container.name, cpus)
        before = reuse.of(pod.uid)
        after = before | cpus if container.init and not container.sidecar else before & ~cpus
        return state, Reuse(pod.uid, after)

    def allocate_pod(self, state: CPUState, pod: Pod, affinity: NUMASet | None) -> CPUState:
        """The state once the pod has its budget of CPUs as a whole; `share_out` divides them.

        `affinity` is the Topology Manager's hint for the pod: its nodes are used first.

        Raises:
            EmptySharedPoolError: nothing would be left for containers without a part.
            SMTAlignmentError: whole cores cannot be had.
            NotEnoughCPUsError: too few CPUs are left.
        """
        count = pod.exclusive_cpus_at_once()
        if count == 0 or self.keeps(state, pod):
            return state
        check_budget(pod)
        self.check_alignment(count, self._in_unbroken_cores(state, 0))
        return state.assign_pod(pod.uid, self._choose(state, count, 0, affinity))

    def keeps(self, state: CPUState, pod: Pod) -> bool:
        """Whether the pod has CPUs as a whole that it keeps, as documented."""
        return pod.uid in state.pods and not self.release.has(defects.POD_LEVEL_TAKEN_ANEW)

    def share_out(self, state: CPUState, pod: Pod) -> CPUState:
        """The state once each container has its part of what the pod has as a whole.

        An init container that is no sidecar may have what sidecars before it leave; all others
        without a part of their own share what is left when everyone has theirs.

        Raises:
            NotEnoughCPUsError: parts are larger than the whole.
        """
        if pod.exclusive_cpus_at_once() == 0:
            return state
        left = state.pods[pod.uid]
        parts: dict[str, int] = {}
        for container in pod.containers:
            count = pod.exclusive_cpus(container)
            if count:
                parts[container.name] = self._whole(self.take(left, count), left, count)
                if not container.passes:
                    left &= ~parts[container.name]
            elif container.passes:
                parts[container.name] = left
        for container in pod.containers:
            state = state.share(pod.uid, container.name, parts.get(container.name, left))
        return state

    def _in_unbroken_cores(self, state: CPUState, reusable: int) -> int:
        if self.only_whole_cores:
            return (self.available(state) | reusable).bit_count()
        return (state.shared & ~self.broken).bit_count()

    def _has_ended(self, state: CPUState, pod: Pod, container: Container) -> bool:
        """Whether a container without CPUs ran before one that has its own by now."""
        if self.release.has(defects.ENDED_INIT_SERVED) or not container.init or container.sidecar:
            return False
        apps = (other for other in pod.containers if not other.init)
        return any(state.of(pod.uid, app.name) is not None for app in apps)

    def _choose(self, state: CPUState, count: int, reusable: int, affinity: NUMASet | None) -> int:
        available = self.available(state)
        fits = count <= (available | reusable).bit_count()
        near = -1 if affinity is None else self._aligned(affinity)
        first = reusable & near
        if not fits or self.release.has(defects.INIT_CPUS_NOT_REUSED):
            first = 0
        preferred = [first] if first else []
        least = 0
        if affinity is not None:
            preferred.append((available | reusable) & near)
            least = 0 if self.release.has(defects.AFFINITY_SHRUNK) else len(affinity)
        chosen = 0
        for cpus in preferred:
            left = cpus & ~chosen
            wanted = min(count - chosen.bit_count(), left.bit_count())
            chosen |= self.take(left, wanted, chosen, least)
        left = (available | reusable) & ~chosen
        chosen |= self.take(left, count - chosen.bit_count(), chosen)
        return self._whole(chosen, available | reusable, count)

    def _whole(self, chosen: int, available: int, count: int) -> int:
        """The CPUs that were chosen, or others where these must be whole cores and are not."""
        if self.only_whole_cores and self.topology.complete_cores(chosen) != chosen:
            return self._largest_cores(available, count)
        return chosen

    def _largest_cores(self, available: int, count: int) -> int:
        """`count` CPUs in whole cores, for machines where small cores come between large ones."""
        chosen = 0
        for core in sorted(self.topology.cores.values(), key=int.bit_count, reverse=True):
            if not core & ~available and (chosen | core).bit_count() <= count:
                chosen |= core
        if chosen.bit_count() < count:
            raise SMTAlignmentError(f"SMT Alignment Error: {count} CPUs cannot be whole cores")
        return chosen

    def _aligned(self, affinity: NUMASet) -> int:
        nodes = union(self.topology.nodes.get(node, 0) for node in affinity)
        if not self.options.by_socket:
            return nodes
        sockets = self.topology.sockets
        return union(sockets[socket] for socket in touching(sockets, nodes))

    def restore(self, state: CPUState) -> CPUState:
        """The state to start with, given what the checkpoint file holds.

        Raises:
            PolicyError: the file does not fit this machine and this reservation.
        """
        cpus = self.topology.cpus & ~(self.reserved if self.options.strict else 0)
        if not state.shared:
            if self._used_up(state, cpus):
                return state
            if state.exclusive:
                raise PolicyError("default cpuset cannot be empty")
            return CPUState(cpus)
        self._check_reserved(state.shared)
        for uid, name, own in state:
            if own & state.shared:
                raise PolicyError(
                    f'pod: {uid}, container: {name} cpuset: "{_text(own)}" overlaps with default '
                    f'cpuset "{_text(state.shared)}"'
                )
        if state.all_cpus() != cpus:
            raise PolicyError(
                f'current set of available CPUs "{_text(cpus)}" doesn\'t match with CPUs in '
                f'state "{_text(state.all_cpus())}"'
            )
        return state

    def _used_up(self, state: CPUState, cpus: int) -> bool:
        """Whether exclusive CPUs are all that there is, with the reserved ones kept apart."""
        documented = not self.release.has(defects.STRICT_EMPTY_POOL)
        return documented and self.options.strict and state.all_cpus() == cpus

    def _check_reserved(self, shared: int) -> None:
        if self.options.strict:
            if self.reserved & shared:
                raise PolicyError(
                    f'some of strictly reserved cpus: "{_text(self.reserved & shared)}" are '
                    f'present in defaultCpuSet: "{_text(shared)}"'
                )
        elif self.reserved & ~shared:
            raise PolicyError(
                f'not all reserved cpus: "{_text(self.reserved)}" are present in defaultCpuSet: '
                f'"{_text(shared)}"'
            )


def make_static(
    topology: CPUTopology,
    options: StaticOptions,
    count: int,
    named: int,
    release: Release,
) -> StaticPolicy:
    """The static policy that reserves the CPUs `named`, or else `count` CPUs.

    CPUs are reserved in ascending order by physical core, by the rules of assignment.

    Raises:
        PolicyError: so many CPUs cannot be reserved.
    """
    bare = StaticPolicy(topology, options, release)
    reserved = named
    if not named:
        try:
            reserved = bare.take(topology.cpus, count)
        except NotEnoughCPUsError:
            reserved = 0
    if reserved.bit_count() != count:
        raise PolicyError(
            f"[cpumanager] unable to reserve the required amount of CPUs (size of "
            f"{_text(reserved)} did not equal {count})"
        )
    return StaticPolicy(topology, options, release, reserved, topology.whole_cores(reserved))


def check_budget(pod: Pod) -> None:
    """Checks that CPUs of the pod's budget are left for containers without a part of it.

    Raises:
        EmptySharedPoolError: there are none.
    """
    counts = [(container, pod.exclusive_cpus(container)) for container in pod.containers]
    parts = [(container, {"cpu": count} if count else {}) for container, count in counts]
    budget.check({"cpu": pod.exclusive_cpus_at_once()}, parts)


def _text(cpus: int) -> str:
    return str(CPUSet.from_mask(cpus))
