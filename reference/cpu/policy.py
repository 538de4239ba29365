"""The CPU Manager's policies: ``none`` and ``static``.

(Kubernetes documentation, "Policies for assigning CPUs to Pods".) A policy is an immutable value;
its functions return the next state. CPU sets are bit masks in this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, islice, permutations, zip_longest
from typing import TYPE_CHECKING, NamedTuple, Self

from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.choices import MAX_OPTIONS
from numaproof.reference.cpu.assignment import Assignment, NotEnoughCPUsError
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.cpu.topology import touching, union
from numaproof.reference.errors import AdmissionError
from numaproof.reference.pods import budget
from numaproof.reference.pods.readmission import Readmission
from numaproof.reference.topology.hints import ANYWHERE
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.reference.choices import Decisions
    from numaproof.reference.cpu.options import StaticOptions
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.hints import Demand, TopologyHint


class PolicyError(Exception):
    """The policy cannot be created, or the restored state does not fit it."""


class SMTAlignmentError(AdmissionError):
    """The request cannot be met with whole physical cores."""

    def __init__(self, message: str) -> None:
        super().__init__("SMTAlignmentError", f"SMT Alignment Error: {message}")


def not_whole_cores(count: int, per_core: int) -> SMTAlignmentError:
    return SMTAlignmentError(f"requested {count} cpus not multiple cpus per core = {per_core}")


@dataclass(frozen=True, slots=True)
class StaticCPUPolicy(Readmission):
    """The static policy, which never assigns the `reserved` CPUs exclusively.

    `assignment` chooses CPUs. `broken_cores` are all CPUs of cores with a reserved CPU; with
    ``full-pcpus-only``, they cannot be assigned. `first_choice` has, by container, the CPUs to
    assign if they are as good as those that would be chosen; `decisions`, if any, choose instead.
    """

    assignment: Assignment
    reserved: int = 0
    broken_cores: int = 0
    first_choice: Mapping[str, int] = field(default_factory=dict, compare=False)
    decisions: Decisions | None = field(default=None, compare=False)

    @property
    def topology(self) -> CPUTopology:
        return self.assignment.topology

    @property
    def options(self) -> StaticOptions:
        return self.assignment.options

    @property
    def allocatable(self) -> int:
        """The CPUs that can be assigned exclusively.

        Requirements: CPU-RESERVE-001.
        """
        return self.topology.cpus & ~self.reserved

    def with_reservation_of(self, other: StaticCPUPolicy) -> Self:
        return self.with_reserved(other.reserved)

    def with_reserved(self, reserved: int) -> Self:
        return replace(self, reserved=reserved, broken_cores=self.topology.whole_cores(reserved))

    def reserving(self, first_choice: int) -> Self:
        """Returns the policy that reserves CPUs out of `first_choice`, if these are enough."""
        chosen = CPUSet.from_mask(first_choice & self.topology.cpus)
        count = self.reserved.bit_count()
        return self.with_reserved(chosen.first(count).mask) if len(chosen) >= count else self

    def preferring(self, first_choice: Mapping[str, int], decisions: Decisions | None) -> Self:
        return replace(self, first_choice=first_choice, decisions=decisions)

    def available(self, state: CPUState) -> int:
        """The CPUs that can be assigned at the moment.

        Requirements: CPU-POOL-008, CPU-RESERVE-008.
        """
        free = state.shared & ~self.reserved
        whole = self.assignment.only_whole_cores
        return self.topology.complete_cores(free) if whole else free

    def check_alignment(self, count: int, free: int) -> None:
        """Checks that `count` CPUs make up whole cores and that `free` CPUs are enough.

        Raises:
            SMTAlignmentError: they do not, or `free`, the number of CPUs in whole cores, is too
                small (only with ``full-pcpus-only``).

        Requirements: CPU-ERROR-005, CPU-OPT-FULLPCPUS-003, CPU-OPT-FULLPCPUS-006,
        CPU-OPT-FULLPCPUS-011.
        """
        if not self.options.full_cores:
            return
        per_core = self.assignment.cpus_per_core
        if count % per_core:
            raise not_whole_cores(count, per_core)
        if count > free:
            raise SMTAlignmentError(
                "not enough free physical CPUs: available physical CPUs = "
                f"{free}, requested CPUs = {count}, CPUs per core = {per_core}"
            )

    def allocate(
        self,
        state: CPUState,
        pod: Pod,
        container: PodContainer,
        affinity: TopologyHint,
    ) -> CPUState:
        """Assigns CPUs to the container, unless it already has them.

        `affinity` is the Topology Manager's hint for the container; the nodes in it are used first.

        Raises:
            SMTAlignmentError: there are not enough whole cores.
            NotEnoughCPUsError: there are not enough CPUs.

        Requirements: CPU-HINT-015, CPU-INIT-001, CPU-INIT-003, CPU-INIT-004, CPU-OPT-FULLPCPUS-007,
        CPU-OPT-FULLPCPUS-009, CPU-OPT-FULLPCPUS-010, CPU-RESTART-003, CPU-RESTART-006,
        CPU-RESTART-010, CPU-STATIC-006, CPU-STATIC-007, TOPO-ORDER-005, TOPO-RESTART-003.
        """
        count = pod.exclusive_cpus(container)
        if count == 0:
            return state
        reusable = state.reuse.of(pod.uid)
        cpus = state.of(pod.uid, container.name)
        if cpus is None:
            if self.has_ended(state, pod, container):
                return state
            self.check_alignment(count, self.in_unbroken_cores(state, reusable))
            choice = self.first_choice.get(container.name, 0)
            cpus = self._choose(state, count, reusable, affinity, choice)
            state = state.assign(pod.uid, container.name, cpus)
        else:
            self.revalidate(state, count, reusable)
        after = reusable | cpus if container.runs_to_completion else reusable & ~cpus
        return replace(state, reuse=ReusableCPUs(pod.uid, after))

    def pins(self, pod: Pod, container: PodContainer) -> bool:
        """Whether the container gets exclusive CPUs."""
        return pod.exclusive_cpus(container) > 0

    def revalidate(self, state: CPUState, count: int, reusable: int) -> None:
        """Checks whether a container may keep its CPUs. As documented, it always may.

        Requirements: CPU-RESTART-003.
        """

    def allocate_pod(self, state: CPUState, pod: Pod, affinity: TopologyHint) -> CPUState:
        """Assigns the pod's CPUs, which `share_out` then divides.

        `affinity` is the Topology Manager's hint for the pod; the nodes in it are used first.

        Raises:
            EmptySharedPoolError: no CPUs would remain for containers without CPUs of their own.
            SMTAlignmentError: there are not enough whole cores.
            NotEnoughCPUsError: there are not enough CPUs.

        Requirements: CPU-OPT-FULLPCPUS-011, CPU-RESTART-009, NODE-PODLEVEL-009, NODE-PODLEVEL-011.
        """
        count = pod.peak_exclusive_cpus()
        if count == 0 or self.keeps(state, pod):
            return state
        check_budget(pod)
        self.check_alignment(count, self.in_unbroken_cores(state, 0))
        choice = union(self.first_choice.values())
        return state.assign_pod(pod.uid, self._choose(state, count, 0, affinity, choice))

    def share_out(self, state: CPUState, pod: Pod) -> CPUState:
        """Divides the pod's CPUs among its containers.

        Ordinary init containers without CPUs of their own can use all CPUs that preceding sidecars
        leave. The other containers without CPUs of their own share the rest.

        Raises:
            NotEnoughCPUsError: the containers request more CPUs than the pod has.

        Requirements: NODE-PODLEVEL-008, NODE-PODLEVEL-009, NODE-PODLEVEL-010.
        """
        if pod.peak_exclusive_cpus() == 0:
            return state
        left = state.pods[pod.uid]
        parts: dict[str, int] = {}
        for container in pod.containers:
            count = pod.exclusive_cpus(container)
            if count:
                part = self._whole(self.assignment.take(left, count), count, (left,))
                choice = self.first_choice.get(container.name, 0)
                parts[container.name] = choice if self._is_as_good(choice, part, left) else part
                if not container.runs_to_completion:
                    left &= ~parts[container.name]
            elif container.runs_to_completion:
                parts[container.name] = left
        for container in pod.containers:
            state = state.share(pod.uid, container.name, parts.get(container.name, left))
        return state

    def in_unbroken_cores(self, state: CPUState, reusable: int) -> int:
        """The number of CPUs in cores that can be assigned whole.

        Requirements: CPU-OPT-FULLPCPUS-004.
        """
        if self.assignment.only_whole_cores:
            return (self.available(state) | reusable).bit_count()
        return (state.shared & ~self.broken_cores).bit_count()

    def countable(self, available: int, reusable: int) -> int:
        """The number of CPUs that count for hints, out of the available and the reusable ones.

        Requirements: CPU-HINT-008.
        """
        return (available | reusable).bit_count()

    def reusable_first(self, reusable: int, available: int, count: int) -> int:
        """The CPUs of ended init containers to take first: all if there are enough CPUs, else none.

        Requirements: CPU-INIT-002.
        """
        return reusable if count <= (available | reusable).bit_count() else 0

    def must_reuse(self, near: Demand) -> bool:
        """Whether a container must be near the CPUs of its pod's ended init containers.

        `near` are the container's hints there; if none of them is preferred, it may be anywhere.

        Requirements: CPU-HINT-009, CPU-INIT-008.
        """
        best = evaluation.narrowest(near)
        return best is not None and best.preferred

    def _choose(
        self, state: CPUState, count: int, reusable: int, affinity: TopologyHint, choice: int
    ) -> int:
        # First the CPUs of ended init containers, then the affinity, then anywhere.
        available = self.available(state)
        near = self.aligned_cpus(affinity)
        first = self.reusable_first(reusable, available, count) & near
        preferred = [first] if first else []
        least = 0
        if affinity.nodes != ANYWHERE:
            preferred.append((available | reusable) & near)
            least = affinity.nodes.bit_count()
        take = self.assignment.take
        chosen = 0
        for cpus in preferred:
            left = cpus & ~chosen
            wanted = min(count - chosen.bit_count(), left.bit_count())
            chosen |= take(left, wanted, chosen, least)
        left = (available | reusable) & ~chosen
        chosen |= take(left, count - chosen.bit_count(), chosen)
        everything = available | reusable
        chosen = self._whole(chosen, count, (first, near & everything, everything))
        aims = (first, near) if affinity.preferred else (first,)
        if self.decisions is not None:
            order = (first, near & ~first, ~near & ~first)
            others = self._other_cpus(everything, count, order)
            fitting = (one for one in others if self._is_as_good(one, chosen, everything, aims))
            return self.decisions.pick(chosen, fitting)
        return choice if self._is_as_good(choice, chosen, everything, aims) else chosen

    def _other_cpus(self, available: int, count: int, order: Iterable[int]) -> Iterator[int]:
        """Yields CPUs that fill the nodes one after the other, in any order of nodes, or evenly.

        `order` are the sets from which to take CPUs in turn.
        """
        whole = self.assignment.only_whole_cores
        cores = self.topology.cores.values()
        units = [one & available for one in cores if not whole or not one & ~available]
        if not whole:
            units = [1 << cpu for one in units for cpu in CPUSet.from_mask(one)]
        nodes = list(self.topology.nodes.values())
        on = [[one for one in units if one & cpus] for cpus in nodes]
        for inside in (*islice(permutations(on), MAX_OPTIONS), None):
            listed = chain(*inside) if inside else filter(None, chain(*zip_longest(*on)))
            yield _first(count, list(listed), order)

    def _is_as_good(self, choice: int, own: int, available: int, aims: Iterable[int] = ()) -> bool:
        """Whether `choice` could be own, and has as many of the CPUs in each of `aims`."""
        if choice & ~available or choice.bit_count() != own.bit_count():
            return False
        if self.assignment.only_whole_cores and self.topology.complete_cores(choice) != choice:
            return False
        return all((choice & aim).bit_count() == (own & aim).bit_count() for aim in aims)

    def _whole(self, cpus: int, count: int, pools: Sequence[int]) -> int:
        """Returns the chosen CPUs, or others if whole cores are required but were not chosen.

        The others come from the first of `pools` that have any, but never split a core.
        """
        if not self.assignment.only_whole_cores or self.topology.complete_cores(cpus) == cpus:
            return cpus
        others = self._largest_cores(pools, count) or self._largest_cores(pools[-1:], count)
        if not others:
            raise SMTAlignmentError(f"{count} CPUs cannot be whole cores")
        return others

    def _largest_cores(self, pools: Iterable[int], count: int) -> int:
        """Chooses `count` CPUs in whole cores, largest first, for cores that differ in size.

        Returns no CPUs if that isn't possible.
        """
        chosen = 0
        for pool in pools:
            for core in sorted(self.topology.cores.values(), key=int.bit_count, reverse=True):
                if not core & ~pool and (chosen | core).bit_count() <= count:
                    chosen |= core
        return chosen if chosen.bit_count() == count else 0

    def aligned_cpus(self, affinity: TopologyHint) -> int:
        """The CPUs that count as aligned with `affinity`.

        Requirements: CPU-OPT-ALIGNSOCKET-003.
        """
        if affinity.nodes == ANYWHERE:
            return self.topology.cpus
        near = NUMASet.from_mask(affinity.nodes)
        nodes = union(cpus for node, cpus in self.topology.nodes.items() if node in near)
        if not self.options.by_socket:
            return nodes
        sockets = self.topology.sockets
        return union(sockets[socket] for socket in touching(sockets, nodes))

    def restore(self, state: CPUState) -> CPUState:
        """Returns the initial state, given the state in the checkpoint file.

        Raises:
            PolicyError: the checkpoint does not fit the machine or the reservation.

        Requirements: CPU-CHECKPOINT-016, CPU-CHECKPOINT-017, CPU-CHECKPOINT-018, CPU-ERROR-001,
        CPU-OPT-STRICT-002, CPU-OPT-STRICT-003, CPU-OPT-STRICT-005, CPU-POOL-001, CPU-RESERVE-009,
        CPU-RESTART-007.
        """
        cpus = self.topology.cpus & ~(self.reserved if self.options.strict else 0)
        if not state.shared:
            if state.all_cpus() and self.is_used_up(state, cpus):
                return state
            if state.exclusive:
                raise PolicyError("default cpuset cannot be empty")
            return replace(state, shared=cpus)
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

    def release(self, state: CPUState, uid: str, name: str) -> CPUState:
        return state.release(uid, name)

    def is_used_up(self, state: CPUState, cpus: int) -> bool:
        """Whether all CPUs are assigned exclusively, apart from strictly reserved CPUs.

        Requirements: CPU-CHECKPOINT-016, CPU-OPT-STRICT-006.
        """
        return self.options.strict and state.all_cpus() == cpus

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


class CPURules(NamedTuple):
    """The classes that implement a policy."""

    policy: type[StaticCPUPolicy] = StaticCPUPolicy
    assignment: type[Assignment] = Assignment
    distributed_assignment: type[DistributedAssignment] = DistributedAssignment

    def without_reservation(self, topology: CPUTopology, options: StaticOptions) -> StaticCPUPolicy:
        """Creates the static policy without reserved CPUs."""
        assignment = self.distributed_assignment if options.across_numa else self.assignment
        return self.policy(assignment(topology, options))


DOCUMENTED = CPURules()
"""The rules as documented."""


def make_static(
    topology: CPUTopology,
    options: StaticOptions,
    count: int,
    named_cpus: int,
    rules: CPURules = DOCUMENTED,
) -> StaticCPUPolicy:
    """Creates the static policy that reserves `named_cpus`, or `count` CPUs if none are named.

    Raises:
        PolicyError: the number of reserved CPUs is not `count`.

    Requirements: CPU-OPT-STRICT-004, CPU-RESERVE-007, CPU-RESERVE-010.
    """
    bare, reserved = rules.without_reservation(topology, options), named_cpus
    if not named_cpus:
        try:
            reserved = bare.assignment.reserve(count)
        except NotEnoughCPUsError:
            reserved = 0
    if reserved.bit_count() != count:
        raise PolicyError(
            f"[cpumanager] unable to reserve the required amount of CPUs (size of "
            f"{_text(reserved)} did not equal {count})"
        )
    return bare.with_reserved(reserved)


def check_budget(pod: Pod) -> None:
    """Checks that the pod has CPUs left for containers without CPUs of their own.

    Raises:
        EmptySharedPoolError: no CPUs are left.
    """
    counts = [(container, pod.exclusive_cpus(container)) for container in pod.containers]
    parts = [(container, {"cpu": count} if count else {}) for container, count in counts]
    budget.check({"cpu": pod.peak_exclusive_cpus()}, parts)


def _text(cpus: int) -> str:
    return str(CPUSet.from_mask(cpus))


def _first(count: int, units: Iterable[int], order: Iterable[int]) -> int:
    """The first units with `count` CPUs in all, from each set in `order` in turn."""
    chosen = 0
    for within in order:
        for cpus in units:
            if cpus & within and (chosen | cpus).bit_count() <= count:
                chosen |= cpus
    return chosen
