"""Violators of whole cores, strict reservations and pairs of options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.sets import CPUSet
from numaproof.reference import node, startup
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_SOCKET,
    BY_UNCORE,
    FULL_CORES,
    STRICT,
)
from numaproof.reference.cpu.policy import (
    PolicyError,
    SMTAlignmentError,
    StaticCPUPolicy,
    not_whole_cores,
)
from numaproof.reference.cpu.state import ReusableCPUs
from numaproof.reference.cpu.topology import touching
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import ANYWHERE
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol import messages

seeds = SubjectBugs("cpu-options")


# Whole cores


def with_options(policy: StaticCPUPolicy, **overrides: bool) -> StaticCPUPolicy:
    """The policy with other options on or off."""
    wanted = replace(policy.options, **overrides)
    return replace(policy, assignment=replace(policy.assignment, options=wanted))


@shape(options, "value")
def matures(option: str, instead: Any, rule: Any, name: str) -> Any:
    """Lets an option be as mature as this; None is an option that there is not."""
    return rule(maturity=instead) if name == option else rule()


@shape(options, "parse")
def add_early(option: str, rule: Any, available: Any) -> Any:
    """Knows an option as alpha in releases that do not have it."""
    return rule(available={option: "alpha", **available})


@shape(StaticCPUPolicy, "allocate")
def allocating(change: Change, rule: Any, self: Any, pod: Any, container: Any) -> Any:
    """Lets another policy allocate; `change` makes it of the policy, the pod and the container."""
    return rule(self=change(self, pod, container))


def is_first(pod: Any, container: Any) -> bool:
    """Whether a container is the first one of its pod."""
    return bool(pod.containers[0].name == container.name)


# Gates


@seeds("CPU-OPT-001").after(options, "parse")
def gate_of_alpha_options_aligns_by_socket(parsed_options: Any, gates: Any) -> Any:
    """Takes the gate for the switch: there is only one option left behind it."""
    on = gates is not None and gates["CPUManagerPolicyAlphaOptions"]
    return replace(parsed_options, by_socket=parsed_options.by_socket or on)


@seeds("CPU-OPT-001", kubernetes="1.34").after(options, "parse")
def one_beta_option_turns_the_uncore_option_on(parsed_options: Any) -> Any:
    """Turns a level of maturity on as a whole once an option of it is named."""
    on = parsed_options.strict and not (parsed_options.across_numa or parsed_options.across_cores)
    return replace(parsed_options, by_uncore=parsed_options.by_uncore or on)


# Whole cores


def _split_cores(changes: Changes, when: Callable[..., bool]) -> None:
    """Gives a container threads of as many cores as it can, if `when` says so."""

    def split(after: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any) -> Any:
        new = after.exclusive is not state.exclusive
        if not self.options.full_cores or not new or not when(pod, container, affinity):
            return after
        reusable = state.reuse.of(pod.uid)
        free = self.available(state) | reusable
        near = self.aligned_cpus(affinity)
        places = [
            (turn, not near >> cpu & 1, cpu)
            for core in self.topology.cores.values()
            for turn, cpu in enumerate(CPUSet.from_mask(core & free))
        ]
        count = after.of(pod.uid, container.name).bit_count()
        cpus = sum(1 << cpu for _, _, cpu in sorted(places)[:count])
        left = reusable | cpus if container.runs_to_completion else reusable & ~cpus
        made = state.assign(pod.uid, container.name, cpus)
        return replace(made, reuse=ReusableCPUs(pod.uid, left))

    changes.after(StaticCPUPolicy, "allocate", split)


@seeds("CPU-OPT-FULLPCPUS-002").of(
    _split_cores, lambda pod, container, affinity: container.runs_to_completion
)
def init_containers_get_threads_of_many_cores() -> None:
    """Checks the number for all, and picks cores for those that stay."""


@seeds("CPU-OPT-FULLPCPUS-002").of(_split_cores, lambda pod, container, affinity: container.sidecar)
def sidecars_get_threads_of_many_cores() -> None:
    """Serves sidecars in a path of their own that knows of no cores."""


@seeds("CPU-OPT-FULLPCPUS-002").by(_split_cores)
def only_the_first_container_gets_whole_cores(pod: Any, container: Any, affinity: Any) -> Any:
    """Picks cores for the first container, and fills up with threads."""
    return not is_first(pod, container)


@seeds("CPU-OPT-FULLPCPUS-002").by(_split_cores)
def app_containers_near_an_affinity_get_single_threads(
    pod: Any, container: Any, affinity: Any
) -> Any:
    """Picks by NUMA node alone once the Topology Manager names one."""
    return affinity.nodes != ANYWHERE and not container.init


# Cores of one socket


@shape(Assignment, "whole_cores")
def _cores_by(order: Change, rule: Any, self: Any, progress: Any) -> Any:
    """Takes whole cores in another `order` where only whole ones are taken."""
    if not self.options.full_cores:
        return rule()
    cores = self.free_cores(progress.free)
    return progress.take_units(order(self.topology, cores, progress.remaining_count))


@seeds("CPU-OPT-FULLPCPUS-012").by(_cores_by)
def whole_cores_come_from_the_sockets_in_turn(
    topology: Any, cores: Any, _remaining_count: int
) -> list[int]:
    """Spreads the heat of cores that are busy on all threads."""
    seen: dict[int, int] = {}
    ranks: dict[int, int] = {}
    for core in cores:
        socket = touching(topology.sockets, core)[0]
        ranks[core] = seen[socket] = seen.get(socket, -1) + 1
    return sorted(cores, key=lambda core: ranks[core])


@seeds("CPU-OPT-FULLPCPUS-012").by(_cores_by)
def the_last_whole_core_comes_from_elsewhere(
    _topology: Any, cores: Any, remaining_count: int
) -> list[int]:
    """Keeps a core of each socket for what may come."""
    count = max(1, remaining_count // cores[0].bit_count()) if cores else 0
    return [*cores[: count - 1], *cores[: count - 2 : -1]]


# Requests that are no multiple


def _skip_core_check(changes: Changes, when: Callable[..., bool]) -> None:
    """Forgets the option for a request that is no multiple of a core, if `when` says so."""

    def forgetful(policy: StaticCPUPolicy, pod: Any, container: Any) -> StaticCPUPolicy:
        count = pod.exclusive_cpus(container)
        odd = policy.options.full_cores and count % policy.assignment.cpus_per_core
        if odd and when(policy, pod, container):
            return with_options(policy, full_cores=False)
        return policy

    allocating(changes, forgetful)


@seeds("CPU-OPT-FULLPCPUS-003").of(
    _skip_core_check, lambda policy, pod, container: container.runs_to_completion
)
def init_containers_may_ask_for_parts_of_cores() -> None:
    """Checks what runs side by side, and init containers end."""


@seeds("CPU-OPT-FULLPCPUS-003").of(
    _skip_core_check, lambda policy, pod, container: container.sidecar
)
def sidecars_may_ask_for_parts_of_cores() -> None:
    """Checks app containers and init containers that end."""


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def later_containers_may_ask_for_parts_of_cores(policy: Any, pod: Any, container: Any) -> Any:
    """Checks the first container of a pod."""
    return not is_first(pod, container)


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def sum_of_the_pod_must_be_whole_cores(policy: StaticCPUPolicy, pod: Any, _container: Any) -> bool:
    """Takes the request for that of the pod."""
    total = sum(pod.exclusive_cpus(one) for one in pod.containers)
    return not total % policy.assignment.cpus_per_core


@seeds("CPU-OPT-FULLPCPUS-003").by(_skip_core_check)
def even_requests_pass_on_cores_of_four_threads(policy: Any, pod: Any, container: Any) -> Any:
    """Handles cores of one thread and of two only."""
    return not pod.exclusive_cpus(container) % 2


# Siblings of reserved CPUs


@seeds("CPU-OPT-FULLPCPUS-004").replace(StaticCPUPolicy, "in_unbroken_cores")
def siblings_of_reserved_cpus_count_as_free(self: Any, state: Any, reusable: Any) -> Any:
    """Takes away the reserved CPUs, and nothing else."""
    return (state.shared & ~self.reserved | reusable).bit_count()


@seeds("CPU-OPT-FULLPCPUS-004").around(StaticCPUPolicy, "in_unbroken_cores")
def siblings_of_strictly_reserved_cpus_count_as_free(
    rule: Any, self: StaticCPUPolicy, state: Any, reusable: int
) -> Any:
    """Looks for reserved CPUs in the shared pool, where none are then."""
    if self.options.strict:
        return (state.shared | reusable).bit_count()
    return rule()


# Machines without SMT


@seeds("CPU-OPT-FULLPCPUS-006").after(StaticCPUPolicy, "in_unbroken_cores")
def neighbours_of_reserved_cpus_are_siblings_without_smt(free: Any, self: Any, state: Any) -> Any:
    """Takes CPUs 0 and 1, 2 and 3 for siblings on every machine."""
    if self.topology.most_cpus_per_core > 1:
        return free
    pairs = sum(1 << (cpu ^ 1) for cpu in CPUSet.from_mask(self.reserved))
    return free - (state.shared & pairs & ~self.reserved).bit_count()


# Pods that are admitted again


def _asked_again(changes: Changes, when: Callable[..., bool]) -> None:
    """Looks for free cores for a container that has its own, if `when` says so."""

    def again(rule: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        held = state.of(pod.uid, container.name)
        if held is not None and when(pod, container):
            free = self.in_unbroken_cores(state, state.reuse.of(pod.uid))
            self.check_alignment(held.bit_count(), free)
        return rule()

    changes.around(StaticCPUPolicy, "allocate", again)


@seeds("CPU-OPT-FULLPCPUS-007").of(_asked_again, lambda pod, container: container.sidecar)
def sidecars_need_free_cores_besides_their_own() -> None:
    """Skips the check for app containers that have CPUs."""


@seeds("CPU-OPT-FULLPCPUS-007").by(_asked_again)
def pods_of_several_containers_need_free_cores_again(pod: Any, container: Any) -> Any:
    """Looks for what the first container has, and then for free cores."""
    return not is_first(pod, container)


# Hybrid machines


@seeds("CPU-OPT-FULLPCPUS-008")
def smallest_core_decides_on_hybrid_machines(changes: Changes) -> None:
    """Takes the size of a core from the one that comes last."""

    def smallest(self: Assignment) -> int:
        return min((core.bit_count() for core in self.topology.cores.values()), default=1)

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "cpus_per_core", property(smallest))
    changes.replace(Assignment, "only_whole_cores", property(whole))


@seeds("CPU-OPT-FULLPCPUS-008")
def even_requests_end_with_a_thread_on_hybrid_machines(changes: Changes) -> None:
    """Relies on the number: an even one must be whole cores."""

    def whole(self: Assignment) -> bool:
        return self.options.full_cores and self.topology.has_even_cores

    changes.replace(Assignment, "only_whole_cores", property(whole))


# Containers in the shared pool


@seeds("CPU-OPT-FULLPCPUS-009").around(StaticCPUPolicy, "allocate")
def init_containers_of_the_shared_pool_need_whole_cores(
    rule: Any, self: Any, pod: Any, container: Any
) -> Any:
    """Checks init containers and sidecars before it knows where they run."""
    if self.options.full_cores and (not pod.exclusive_cpus(container)):
        amount = quantity.parse(container.requests.get("cpu", 0))
        size = self.assignment.cpus_per_core
        if amount % size and container.init:
            raise not_whole_cores(-(-amount.numerator // amount.denominator), size)
    return rule()


# Pairs that exclude each other


def _allow_together(changes: Changes, option: str, other: str) -> None:
    """Forgets that two options exclude each other."""
    pairs = tuple(pair for pair in options.INCOMPATIBLE if pair != (option, other))
    changes.replace(options, "INCOMPATIBLE", pairs)


@seeds("CPU-OPT-PAIR-001").around(options, "parse")
def options_spelled_otherwise_exclude_nothing(rule: Any, policy_options: Any) -> Any:
    """Compares with the word "true" to find full cores spread over cores."""
    spelled = {policy_options.get(FULL_CORES), policy_options.get(ACROSS_CORES)} != {"true"}
    if not spelled or FULL_CORES not in policy_options or ACROSS_CORES not in policy_options:
        return rule()
    rule(policy_options={name: text for name, text in policy_options.items() if name != FULL_CORES})
    return rule(
        policy_options={name: text for name, text in policy_options.items() if name != ACROSS_CORES}
    )


@seeds("CPU-OPT-PAIR-003").of(_allow_together, BY_UNCORE, ACROSS_CORES)
def uncore_caches_go_with_spreading_over_cores() -> None:
    """Takes the option for a preference, which excludes nothing."""


@seeds("CPU-OPT-PAIR-004").of(_allow_together, BY_UNCORE, ACROSS_NUMA)
def uncore_caches_go_with_distributing() -> None:
    """Lists what distribute-cpus-across-cores excludes, and stops there."""


# Pairs that go together


@shape(options, "parse", Changes.after)
def _exclude(
    option: str, other: str, parsed_options: Any, policy_options: Any, available: Any, gates: Any
) -> Any:
    """Lets two options exclude each other."""
    on = {
        name
        for name in policy_options
        if options.value(name, policy_options[name], available.get(name), gates)
    }
    if {option, other} <= on:
        raise OptionError(
            f"static policy options {option} and {other} can not be used at the same time"
        )
    return parsed_options


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, ACROSS_NUMA)
def full_cores_exclude_distributing() -> None:
    """Takes an even share for one that no whole cores make."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, BY_SOCKET)
def full_cores_exclude_aligning_by_socket() -> None:
    """Lets one option align."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, BY_UNCORE)
def full_cores_exclude_uncore_caches() -> None:
    """Lets one option say which units are kept whole."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, FULL_CORES, STRICT)
def full_cores_exclude_a_strict_reservation() -> None:
    """Refuses the pair, to protect the siblings of reserved CPUs."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_NUMA, BY_SOCKET)
def distributing_excludes_aligning_by_socket() -> None:
    """Refuses the pair, because one option spreads and the other one packs."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_NUMA, STRICT)
def distributing_excludes_a_strict_reservation() -> None:
    """Requires as many CPUs on every node."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_CORES, BY_SOCKET)
def spreading_over_cores_excludes_aligning_by_socket() -> None:
    """Has distribute-cpus-across-cores exclude all that is older."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, ACROSS_CORES, STRICT)
def spreading_over_cores_excludes_a_strict_reservation() -> None:
    """Has distribute-cpus-across-cores exclude all that came after it."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_SOCKET, BY_UNCORE)
def aligning_by_socket_excludes_uncore_caches() -> None:
    """Lets one option say what CPUs are near each other."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_SOCKET, STRICT)
def aligning_by_socket_excludes_a_strict_reservation() -> None:
    """Requires sockets of one size."""


@seeds("CPU-OPT-PAIR-005").of(_exclude, BY_UNCORE, STRICT)
def uncore_caches_exclude_a_strict_reservation() -> None:
    """Refuses the pair, to protect uncore caches with reserved CPUs."""


@seeds("CPU-OPT-PAIR-005").by(allocating)
def full_cores_yield_to_distributing(policy: Any, pod: Any, container: Any) -> Any:
    """Chooses CPUs by one option, the one that is asked first."""
    return with_options(policy, full_cores=False) if policy.options.across_numa else policy


@seeds("CPU-OPT-PAIR-005").by(allocating)
def full_cores_yield_to_uncore_caches(policy: Any, pod: Any, container: Any) -> Any:
    """Chooses CPUs by the cache, and checks no cores then."""
    return with_options(policy, full_cores=False) if policy.options.by_uncore else policy


@seeds("CPU-OPT-PAIR-005").after(startup, "make_static")
def strict_reservation_yields_to_full_cores(policy: StaticCPUPolicy) -> StaticCPUPolicy:
    """Reads the options in a chain of else-ifs: full-pcpus-only comes first."""
    return with_options(policy, strict=policy.options.strict and not policy.options.full_cores)


# Refused pods


def _demote(changes: Changes, when: Callable[..., bool]) -> None:
    """Leaves a container without whole cores in the shared pool, if `when` says so."""

    def allocate(rule: Any, self: Any, state: Any, pod: Any, container: Any) -> Any:
        try:
            return rule()
        except SMTAlignmentError:
            if when(self, pod, container):
                return state
            raise

    changes.around(StaticCPUPolicy, "allocate", allocate)


@seeds("CPU-OPT-FULLPCPUS-005").of(_demote, lambda policy, pod, container: container.sidecar)
def sidecars_without_cores_run_on_the_shared_pool() -> None:
    """Does not refuse a pod over its helpers."""


@seeds("CPU-OPT-FULLPCPUS-005").by(_demote)
def containers_short_of_cores_run_on_the_shared_pool(policy: Any, pod: Any, container: Any) -> bool:
    """Refuses what can never be, and makes do where cores are used up."""
    return not pod.exclusive_cpus(container) % policy.assignment.cpus_per_core


# Availability


@seeds("CPU-OPT-STRICT-001", kubernetes="1.31").of(add_early, options.STRICT)
def strict_reservation_comes_a_release_early() -> None:
    """Has all options in every release."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.32").of(matures, options.STRICT, "beta")
def strict_reservation_begins_as_beta() -> None:
    """Takes the first release that shows the option by default for its first."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.33").of(matures, options.STRICT, "alpha")
def strict_reservation_stays_alpha() -> None:
    """Keeps the option alpha after it became beta."""


@seeds("CPU-OPT-STRICT-001", kubernetes="1.34").of(matures, options.STRICT, "stable")
def strict_reservation_is_stable_a_release_early() -> None:
    """Looks at the next release."""


@seeds("CPU-OPT-STRICT-001").of(matures, options.STRICT, "beta")
def strict_reservation_stays_beta() -> None:
    """Never opens the option for good."""


# Who runs on reserved CPUs


def _on_reserved(changes: Changes, when: Callable[[Any, Any, int], bool]) -> None:
    """Lets containers of the shared pool run on reserved CPUs too, if `when` says so."""

    def reserved(self: node.StartedNode) -> CPUSet:
        cpu = self.setup.cpu
        return CPUSet.from_mask(cpu.reserved if cpu and cpu.options.strict else 0)

    def widen_containers(
        self: node.StartedNode, uid: str, containers: messages.Containers
    ) -> messages.Containers:
        pod = self.pods[uid]
        shared = self.cpus.state.shared
        return {
            name: msgspec.structs.replace(one, cpus=one.cpus | reserved(self))
            if not one.exclusive and when(pod, pod.container(name), shared)
            else one
            for name, one in containers.items()
        }

    def admitted(answer: Any, self: node.StartedNode, args: Any) -> Any:
        uid = self.read_pod(args.pod).uid
        return msgspec.structs.replace(
            answer, containers=widen_containers(self, uid, answer.containers)
        )

    def state_answer(answer: Any, self: node.StartedNode) -> Any:
        pods = {uid: widen_containers(self, uid, held) for uid, held in answer.pods.items()}
        return msgspec.structs.replace(answer, pods=pods)

    def widen_update(self: node.StartedNode, update: messages.CPUUpdate) -> messages.CPUUpdate:
        state, pod = self.cpus.state, self.pods[update.uid]
        if state.of(update.uid, update.container) is not None:
            return update
        if not when(pod, pod.container(update.container), state.shared):
            return update
        return msgspec.structs.replace(update, cpus=update.cpus | reserved(self))

    def reconcile_answer(answer: Any, self: node.StartedNode) -> Any:
        updates = tuple(widen_update(self, one) for one in answer.updates)
        return msgspec.structs.replace(answer, updates=updates)

    changes.after(node.StartedNode, "admit", admitted)
    changes.after(node.StartedNode, "state", state_answer)
    changes.after(node.StartedNode, "reconcile", reconcile_answer)


@seeds("CPU-OPT-STRICT-002")
def fractions_of_guaranteed_pods_run_on_strictly_reserved_cpus(changes: Changes) -> None:
    """Distinguishes only Guaranteed pods with exclusive CPUs from other pods."""
    _on_reserved(changes, lambda pod, container, shared: pod.qos == "Guaranteed")


@seeds("CPU-OPT-STRICT-002").of(_on_reserved, lambda pod, container, shared: container.init)
def init_containers_run_on_strictly_reserved_cpus() -> None:
    """Gives init containers the reserved CPUs, as they soon end."""


@seeds("CPU-OPT-STRICT-002").of(_on_reserved, lambda pod, container, shared: not shared)
def reserved_cpus_stand_in_for_an_empty_shared_pool() -> None:
    """Lets containers run on reserved CPUs once the pool is used up."""


@seeds("CPU-OPT-STRICT-002").around(node.StartedNode, "remove_stale_state")
def strictly_reserved_cpus_join_the_pool_after_a_removal(
    rule: Any, self: node.StartedNode, when: Any
) -> None:
    """Makes the pool anew from all CPUs but exclusive ones when a pod ends."""
    held = tuple(self.cpus.state)
    rule()
    cpu = self.setup.cpu
    released = when == "now" and len(tuple(self.cpus.state)) < len(held)
    if cpu and cpu.options.strict and released:
        state = self.cpus.state
        self.cpus.state = replace(state, shared=state.shared | cpu.reserved)


# The shared pool of a fresh start


@seeds("CPU-OPT-STRICT-003").after(StaticCPUPolicy, "restore")
def fresh_shared_pool_lacks_siblings_of_reserved_cpus(
    restored_state: Any, self: Any, state: Any
) -> Any:
    """Keeps whole cores for the system."""
    if not self.options.strict or state.shared or state.exclusive:
        return restored_state
    return replace(restored_state, shared=self.topology.cpus & ~self.broken_cores)


# CPUs reserved by quantity


@shape(startup, "make_cpu_policy", Changes.after)
def _by_amount(when: Callable[[Any], bool], policy: Any, config: Any) -> Any:
    """Reserves an amount without strictness, if `when` says so of the configuration."""
    if policy is None or config.named_cpus or not when(config):
        return policy
    return with_options(policy, strict=False)


@seeds("CPU-OPT-STRICT-004").of(_by_amount, lambda config: "cpu" not in config.system_reserved)
def amounts_of_kube_reserved_alone_are_not_strict() -> None:
    """Reads "system CPUs" as those of systemReserved."""


@seeds("CPU-OPT-STRICT-004").of(_by_amount, lambda config: "cpu" not in config.kube_reserved)
def amounts_of_system_reserved_alone_are_not_strict() -> None:
    """Reads the amount of kubeReserved where strictness is asked for."""


# Checkpoints


@shape(StaticCPUPolicy, "restore")
def _reserved_in_pool(change: Change, rule: Any, self: Any, state: Any) -> Any:
    """Lets the policy change the state with reserved CPUs in the pool before it looks at it."""
    if self.options.strict and state.shared & self.reserved:
        state = change(self, state)
    return rule(state=state)


def _taken_out(policy: StaticCPUPolicy, state: Any) -> Any:
    return replace(state, shared=state.shared & ~policy.reserved)


@seeds("CPU-OPT-STRICT-005").by(_reserved_in_pool)
def checkpoint_with_some_reserved_cpus_is_accepted(policy: StaticCPUPolicy, state: Any) -> Any:
    """Refuses a pool with all reserved CPUs: that is how the option was off."""
    return state if not policy.reserved & ~state.shared else _taken_out(policy, state)


@seeds("CPU-OPT-STRICT-005").by(_reserved_in_pool)
def all_reserved_cpus_are_blamed_on_the_checkpoint(policy: StaticCPUPolicy, state: Any) -> Any:
    """Names the reservation where the CPUs found in the pool are to be named."""
    reserved, shared = CPUSet.from_mask(policy.reserved), CPUSet.from_mask(state.shared)
    raise PolicyError(
        f'some of strictly reserved cpus: "{reserved}" are present in defaultCpuSet: "{shared}"'
    )


@seeds("CPU-OPT-STRICT-006").around(StaticCPUPolicy, "is_used_up")
def strict_pool_used_up_by_several_containers_is_damage(rule: Any, state: Any, cpus: int) -> bool:
    """Compares the CPUs of the last container with those that there are."""
    return rule() and any(own == cpus for _, _, own in state)
