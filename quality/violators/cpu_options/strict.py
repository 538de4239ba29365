"""Violators of the options of the static policy: ``strict-cpu-reservation``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.sets import CPUSet
from numaproof.reference import node, startup
from numaproof.reference.cpu import options
from numaproof.reference.cpu.policy import PolicyError, StaticCPUPolicy
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_options.whole_cores import (
    comes_early,
    matures,
    with_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol import messages

seeds = SubjectBugs("cpu-options")


# Availability


@seeds("CPU-OPT-STRICT-001", kubernetes="1.31")
def strict_reservation_comes_a_release_early(changes: Changes) -> None:
    """Its author has all options in every release."""
    comes_early(changes, options.STRICT)


@seeds("CPU-OPT-STRICT-001", kubernetes="1.32")
def strict_reservation_begins_as_beta(changes: Changes) -> None:
    """Its author takes the first release that shows the option by default for its first."""
    matures(changes, options.STRICT, "beta")


@seeds("CPU-OPT-STRICT-001", kubernetes="1.33")
def strict_reservation_stays_alpha(changes: Changes) -> None:
    """Its author misses that the option became beta."""
    matures(changes, options.STRICT, "alpha")


@seeds("CPU-OPT-STRICT-001", kubernetes="1.34")
def strict_reservation_is_stable_a_release_early(changes: Changes) -> None:
    """Its author looks at the next release."""
    matures(changes, options.STRICT, "stable")


@seeds("CPU-OPT-STRICT-001")
def strict_reservation_stays_beta(changes: Changes) -> None:
    """Its author never opens the option for good."""
    matures(changes, options.STRICT, "beta")


# Who runs on reserved CPUs


def _on_reserved(changes: Changes, when: Callable[[Any, Any, int], bool]) -> None:
    """Lets containers of the shared pool run on reserved CPUs too, if `when` says so."""

    def reserved(self: node.StartedNode) -> CPUSet:
        cpu = self.setup.cpu
        return CPUSet.from_mask(cpu.reserved if cpu and cpu.options.strict else 0)

    def more(self: node.StartedNode, uid: str, held: messages.Containers) -> messages.Containers:
        pod = self.pods[uid]
        shared = self.cpus.state.shared
        return {
            name: msgspec.structs.replace(one, cpus=one.cpus | reserved(self))
            if not one.exclusive and when(pod, pod.container(name), shared)
            else one
            for name, one in held.items()
        }

    def admitted(original: Any, self: node.StartedNode, args: Any) -> Any:
        answer = original(self, args)
        uid = self.read_pod(args.pod).uid
        return msgspec.structs.replace(answer, containers=more(self, uid, answer.containers))

    def stated(original: Any, self: node.StartedNode, args: Any) -> Any:
        answer = original(self, args)
        pods = {uid: more(self, uid, held) for uid, held in answer.pods.items()}
        return msgspec.structs.replace(answer, pods=pods)

    def told_of(self: node.StartedNode, one: messages.CPUUpdate) -> messages.CPUUpdate:
        state, pod = self.cpus.state, self.pods[one.uid]
        if state.of(one.uid, one.container) is not None:
            return one
        if not when(pod, pod.container(one.container), state.shared):
            return one
        return msgspec.structs.replace(one, cpus=one.cpus | reserved(self))

    def told(original: Any, self: node.StartedNode, args: Any) -> Any:
        answer = original(self, args)
        updates = tuple(told_of(self, one) for one in answer.updates)
        return msgspec.structs.replace(answer, updates=updates)

    changes.around(node.StartedNode, "admit", admitted)
    changes.around(node.StartedNode, "state", stated)
    changes.around(node.StartedNode, "reconcile", told)


@seeds("CPU-OPT-STRICT-002")
def fractions_of_guaranteed_pods_run_on_strictly_reserved_cpus(changes: Changes) -> None:
    """Its author knows of Guaranteed pods with exclusive CPUs, and of other pods."""
    _on_reserved(changes, lambda pod, container, shared: pod.qos == "Guaranteed")


@seeds("CPU-OPT-STRICT-002")
def init_containers_run_on_strictly_reserved_cpus(changes: Changes) -> None:
    """Its author gives init containers the reserved CPUs, as they soon end."""
    _on_reserved(changes, lambda pod, container, shared: container.init)


@seeds("CPU-OPT-STRICT-002")
def reserved_cpus_stand_in_for_an_empty_shared_pool(changes: Changes) -> None:
    """Its author has to let containers run somewhere once the pool is used up."""
    _on_reserved(changes, lambda pod, container, shared: not shared)


@seeds("CPU-OPT-STRICT-002")
def strictly_reserved_cpus_join_the_pool_after_a_removal(changes: Changes) -> None:
    """Its author makes the pool anew from all CPUs but exclusive ones when a pod ends."""

    def removed(original: Any, self: node.StartedNode, when: Any, *providers: Any) -> None:
        held = tuple(self.cpus.state)
        original(self, when, *providers)
        cpu = self.setup.cpu
        if when == "now" and cpu and cpu.options.strict and len(tuple(self.cpus.state)) < len(held):
            state = self.cpus.state
            self.cpus.state = dataclasses.replace(state, shared=state.shared | cpu.reserved)

    changes.around(node.StartedNode, "remove_stale_state", removed)


# The shared pool of a fresh start


def _fresh(changes: Changes, pool: Callable[[StaticCPUPolicy], int]) -> None:
    """Lets a fresh start build another shared pool."""

    def restored(original: Any, self: Any, state: Any) -> Any:
        found = original(self, state)
        if not self.options.strict or state.shared or state.exclusive:
            return found
        return dataclasses.replace(found, shared=pool(self))

    changes.around(StaticCPUPolicy, "restore", restored)


@seeds("CPU-OPT-STRICT-003")
def fresh_shared_pool_lacks_siblings_of_reserved_cpus(changes: Changes) -> None:
    """Its author keeps whole cores for the system."""
    _fresh(changes, lambda policy: policy.topology.cpus & ~policy.broken)


# CPUs reserved by quantity


def _by_amount(changes: Changes, when: Callable[[Any], bool]) -> None:
    """Reserves an amount without strictness, if `when` says so of the configuration."""

    def made(original: Any, config: Any, *rest: Any) -> Any:
        policy = original(config, *rest)
        if policy is None or config.named_cpus or not when(config):
            return policy
        return with_options(policy, strict=False)

    changes.around(startup, "make_cpu_policy", made)


@seeds("CPU-OPT-STRICT-004")
def amounts_of_kube_reserved_alone_are_not_strict(changes: Changes) -> None:
    """Its author reads "system CPUs" as those of systemReserved."""
    _by_amount(changes, lambda config: "cpu" not in config.system_reserved)


@seeds("CPU-OPT-STRICT-004")
def amounts_of_system_reserved_alone_are_not_strict(changes: Changes) -> None:
    """Its author reads the amount of kubeReserved where strictness is asked for."""
    _by_amount(changes, lambda config: "cpu" not in config.kube_reserved)


# Checkpoints


def _reserved_in_pool(changes: Changes, change: Callable[[StaticCPUPolicy, Any], Any]) -> None:
    """Lets the policy change the state with reserved CPUs in the pool before it looks at it."""

    def restored(original: Any, self: Any, state: Any) -> Any:
        if self.options.strict and state.shared & self.reserved:
            state = change(self, state)
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restored)


def _taken_out(policy: StaticCPUPolicy, state: Any) -> Any:
    return dataclasses.replace(state, shared=state.shared & ~policy.reserved)


@seeds("CPU-OPT-STRICT-005")
def checkpoint_with_some_reserved_cpus_is_accepted(changes: Changes) -> None:
    """Its author refuses a pool with all reserved CPUs: that is how the option was off."""

    def partly(policy: StaticCPUPolicy, state: Any) -> Any:
        return state if not policy.reserved & ~state.shared else _taken_out(policy, state)

    _reserved_in_pool(changes, partly)


@seeds("CPU-OPT-STRICT-005")
def all_reserved_cpus_are_blamed_on_the_checkpoint(changes: Changes) -> None:
    """Its author names the reservation where the CPUs found in the pool are to be named."""

    def blamed(policy: StaticCPUPolicy, state: Any) -> Any:
        reserved, shared = CPUSet.from_mask(policy.reserved), CPUSet.from_mask(state.shared)
        raise PolicyError(
            f'some of strictly reserved cpus: "{reserved}" are present in defaultCpuSet: "{shared}"'
        )

    _reserved_in_pool(changes, blamed)


@seeds("CPU-OPT-STRICT-006")
def strict_pool_used_up_by_several_containers_is_damage(changes: Changes) -> None:
    """Its author compares the CPUs of the last container with those that there are."""

    def used_up(original: Any, self: Any, state: Any, cpus: int) -> bool:
        return original(self, state, cpus) and any(own == cpus for _, _, own in state)

    changes.around(StaticCPUPolicy, "is_used_up", used_up)
