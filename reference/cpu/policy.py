"""The CPU Manager's policies: ``none`` and ``static``.

(Kubernetes documentation, "Policies for assigning CPUs to Pods".) A policy is an immutable value;
its functions take a state and give the next one. Sets of CPUs are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.assignment import NotEnoughCPUsError, Style, packed
from numaproof.reference.cpu.distribution import distributed
from numaproof.reference.cpu.state import CPUState, Reuse
from numaproof.reference.kubernetes import defects
from numaproof.reference.machine.topology import touching, union

if TYPE_CHECKING:
    from numaproof.protocol.sets import NUMASet
    from numaproof.reference.cpu.options import StaticOptions
    from numaproof.reference.kubernetes.pods import Container, Pod
    from numaproof.reference.kubernetes.releases import Release
    from numaproof.reference.machine.topology import CPUTopology


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
        return Style(
            spread=self.options.across_cores,
            by_uncore=self.options.by_uncore,
            odd_uncore=self.release.uncore_takes_odd_requests,
            overwrites=self.release.has(defects.COMBINATION_OVERWRITTEN),
        )

    @property
    def allocatable(self) -> int:
        """The CPUs that exclusive assignment may use."""
        return self.topology.cpus & ~self.reserved

    def available(self, state: CPUState) -> int:
        """The CPUs that can be assigned now."""
        whole = self.options.full_cores and not self.release.has(defects.BROKEN_CORE_TAKEN)
        return state.shared & ~(self.broken if whole else self.reserved)

    def take(self, available: int, count: int) -> int:
        """`count` CPUs out of `available`, laid out as the options ask.

        Raises:
            NotEnoughCPUsError: `available` has fewer.
        """
        if not self.options.across_numa:
            return packed(self.topology, available, count, self.style)
        group = self.topology.cpus_per_core if self.options.full_cores else 1
        return distributed(self.topology, available, count, group, self.style)

    def check_alignment(self, count: int, free: int) -> None:
        """Checks that `count` CPUs can be whole cores, with `free` CPUs in unbroken cores.

        Raises:
            SMTAlignmentError: they cannot (option ``full-pcpus-only``).
        """
        per_core = self.topology.cpus_per_core
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
            self.check_alignment(count, (state.shared & ~self.broken).bit_count())
        if cpus is None:
            cpus = self._choose(state, count, reuse.of(pod.uid), affinity)
            state = state.assign(pod.uid, container.name, cpus)
        before = reuse.of(pod.uid)
        after = before | cpus if container.init and not container.sidecar else before & ~cpus
        return state, Reuse(pod.uid, after)

    def _has_ended(self, state: CPUState, pod: Pod, container: Container) -> bool:
        """Whether a container without CPUs ran before one that has its own by now."""
        if self.release.has(defects.ENDED_INIT_SERVED) or not container.init or container.sidecar:
            return False
        apps = (other for other in pod.containers if not other.init)
        return any(state.of(pod.uid, app.name) is not None for app in apps)

    def _choose(self, state: CPUState, count: int, reusable: int, affinity: NUMASet | None) -> int:
        available = self.available(state)
        fits = count <= (available | reusable).bit_count()
        first = reusable if fits and not self.release.has(defects.INIT_CPUS_NOT_REUSED) else 0
        preferred = [first] if first else []
        if affinity is not None:
            preferred.append((available | reusable) & self._aligned(affinity))
        chosen = 0
        for cpus in preferred:
            left = cpus & ~chosen
            chosen |= self.take(left, min(count - chosen.bit_count(), left.bit_count()))
        left = (available | reusable) & ~chosen
        chosen |= self.take(left, count - chosen.bit_count())
        self._check_whole(chosen)
        return chosen

    def _check_whole(self, cpus: int) -> None:
        if (
            self.options.full_cores
            and not self.release.has(defects.BROKEN_CORE_TAKEN)
            and self.topology.whole_cores(cpus) != cpus
        ):
            raise SMTAlignmentError(
                f"SMT Alignment Error: {cpus.bit_count()} CPUs cannot be whole cores"
            )

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


def _text(cpus: int) -> str:
    return str(CPUSet.from_mask(cpus))
