"""Mutants of the check of a node's allocatable resources, and of preemption."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec import structs

from numaproof.protocol import messages
from numaproof.reference import node
from numaproof.reference.capacity import allocatable, preemption
from numaproof.reference.capacity.allocatable import Allocatable, Shortage
from numaproof.reference.capacity.preemption import Preemption
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import manifest, quantity
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("capacity")


# What is allocatable


@shape(allocatable, "of_node", Changes.after)
def _amounts(change: Change, found: Allocatable, config: Any, machine: Any) -> Allocatable:
    """Lets `change` replace some of the allocatable amounts."""
    return replace(found, amounts={**found.amounts, **change(found.amounts, config, machine)})


def _is_pages(name: str) -> bool:
    return name.startswith("hugepages-")


@seeds("NODE-ALLOC-001").by(_amounts)
def reserved_cpus_are_allocatable(_: Any, __: Any, machine: Any) -> dict[str, int]:
    """Makes reserved CPUs allocatable."""
    return {"cpu": machine.num_cores * 1000}


@seeds("NODE-ALLOC-001").by(_amounts)
def only_kube_reserved_cpus_are_withheld(_: Any, config: Any, machine: Any) -> dict[str, int]:
    """Makes the CPUs in systemReserved allocatable."""
    if config.named_cpus:
        return {}
    reserved = quantity.milli_value(config.kube_reserved.get("cpu", "0"))
    return {"cpu": machine.num_cores * 1000 - reserved}


@seeds("NODE-ALLOC-001").by(_amounts)
def only_whole_cpus_are_allocatable(amounts: Any, _: Any, __: Any) -> dict[str, int]:
    """Rounds the allocatable CPUs down to a whole number."""
    return {"cpu": amounts["cpu"] // 1000 * 1000}


@seeds("NODE-ALLOC-016").around(allocatable, "excess")
def only_reserved_cpus_can_be_too_many(rule: Any, machine: Any) -> Any:
    """Starts even if more memory is reserved than the machine has."""
    return rule(machine=structs.replace(machine, memory_capacity=1 << 60))


@seeds("NODE-ALLOC-016").around(allocatable, "excess")
def only_reserved_memory_can_be_too_much(rule: Any) -> Any:
    """Starts even if more CPUs are reserved than the machine has."""
    return rule(cpu_reservation=Fraction(0))


@seeds("NODE-ALLOC-002").by(_amounts)
def eviction_threshold_is_allocatable(_: Any, config: Any, machine: Any) -> dict[str, int]:
    """Ignores the hard eviction threshold."""
    both = (config.kube_reserved, config.system_reserved)
    reserved = sum(quantity.value(one.get("memory", "0")) for one in both)
    pages = sum(1024 * one.page_size * one.num_pages for one in machine.hugepages or ())
    return {"memory": machine.memory_capacity - reserved - pages}


@seeds("NODE-ALLOC-003").by(_amounts)
def pods_per_core_are_not_limited(_: Any, config: Any, __: Any) -> dict[str, int]:
    """Ignores podsPerCore."""
    return {"pods": config.max_pods}


@seeds("NODE-ALLOC-003").by(_amounts)
def pods_per_core_replace_the_limit(_: Any, config: Any, machine: Any) -> dict[str, int]:
    """Ignores maxPods if podsPerCore is set."""
    return {"pods": config.pods_per_core * machine.num_cores} if config.pods_per_core else {}


@seeds("NODE-ALLOC-003").around(Allocatable, "shortages")
def pods_without_requests_are_not_counted(rule: Any, others: Sequence[Pod]) -> Any:
    """Counts only pods with requests."""
    return rule(others=[one for one in others if any(c.requests for c in one.containers)])


@seeds("NODE-ALLOC-004").by(_amounts)
def named_cpus_do_not_replace_quantities(_: Any, config: Any, machine: Any) -> dict[str, int]:
    """Ignores reservedSystemCPUs."""
    both = (config.kube_reserved, config.system_reserved)
    reserved = sum(quantity.milli_value(one.get("cpu", "0")) for one in both)
    return {"cpu": machine.num_cores * 1000 - reserved}


@seeds("NODE-ALLOC-005").by(_amounts)
def memory_in_huge_pages_is_allocatable(amounts: Any, _: Any, __: Any) -> dict[str, int]:
    """Doesn't subtract huge pages from the allocatable memory."""
    pages = sum(amount for name, amount in amounts.items() if _is_pages(name))
    return {"memory": amounts["memory"] + pages}


@seeds("NODE-ALLOC-005").around(Allocatable, "shortages")
def huge_pages_are_not_checked(rule: Any) -> Any:
    """Admits pods whatever huge pages they request."""
    return (one for one in rule() if not _is_pages(one.resource))


@seeds("NODE-ALLOC-006").after(Shortage, "__str__")
def shortages_count_whole_cpus(message: str, self: Shortage) -> str:
    """Writes CPUs as whole numbers."""
    whole = self._replace(request=-(-self.request // 1000), others=-(-self.others // 1000))
    if self.resource != "cpu":
        return message
    return message.replace(f"requested: {self.request}, used: {self.others}", _amounts_of(whole))


def _amounts_of(shortage: Shortage) -> str:
    return f"requested: {shortage.request}, used: {shortage.others}"


@seeds("NODE-ALLOC-006").after(Shortage, "__str__")
def shortages_do_not_name_the_resource(message: str, self: Shortage) -> str:
    """Leaves out the name of the resource."""
    return message.replace(f" {self.resource},", ",")


# What pods request


@seeds("NODE-ALLOC-007").around(allocatable, "total_request")
def init_containers_request_nothing(rule: Any, pod: Pod) -> int:
    """Counts only the requests of app containers."""
    apps = tuple(one for one in pod.containers if not one.init)
    requested: int = rule(replace(pod, containers=apps))
    return requested


@seeds("NODE-ALLOC-007").around(allocatable, "total_request")
def all_containers_request_at_once(rule: Any, pod: Pod) -> int:
    """Adds up the requests of all containers."""
    plain = tuple(replace(one, init=False, sidecar=False) for one in pod.containers)
    requested: int = rule(replace(pod, containers=plain))
    return requested


@seeds("NODE-ALLOC-007").around(allocatable, "total_request")
def overhead_is_not_requested(rule: Any, pod: Pod) -> int:
    """Ignores the overhead."""
    requested: int = rule(replace(pod, overhead={}))
    return requested


@seeds("NODE-ALLOC-007").around(allocatable, "total_request")
def pod_level_requests_do_not_count(rule: Any, pod: Pod) -> int:
    """Ignores pod-level requests."""
    requested: int = rule(replace(pod, requests={}))
    return requested


@seeds("NODE-ALLOC-008").around(StartedNode, "admit")
def node_is_checked_before_the_managers(rule: Any, self: StartedNode, args: Any) -> Any:
    """Compares the pod's requests with the allocatable resources first."""
    pod = self.read_pod(args.pod)
    others = [one for uid, one in self.pods.items() if uid in self.admitted - {pod.uid}]
    offered = self.setup.allocatable
    for shortage in offered.shortages(pod, others) if offered else ():
        if not preemption.is_critical(pod):
            raise AdmissionError(shortage.reason, str(shortage))
    return rule()


# Who is critical, and whom critical pods evict


@seeds("NODE-ALLOC-009").after(node, "is_critical", lambda _: False)
def critical_pods_are_refused() -> None:
    """Refuses critical pods like all others."""


@seeds("NODE-ALLOC-009").after(node, "is_critical")
def every_pod_with_a_priority_is_critical(_: Any, pod: Pod) -> bool:
    """Lets pods with any positive priority evict others."""
    return (pod.priority or 0) > 0


@seeds("NODE-ALLOC-009").replace(manifest, "SYSTEM_PRIORITIES", {})
def priority_classes_are_passed_over() -> None:
    """Ignores the class of the priority."""


@seeds("NODE-ALLOC-017").replace(messages, "is_static", lambda _: False)
def static_pods_are_like_others() -> None:
    """Does not tell static pods from others."""


@seeds("NODE-ALLOC-017").after(preemption, "may_preempt")
def static_pods_have_the_lowest_priority(_: Any, pod: Pod, other: Pod) -> bool:
    """Takes a missing priority for 0."""
    return not preemption.is_critical(other) or (pod.priority or 0) > (other.priority or 0)


@seeds("NODE-ALLOC-010").around(Preemption, "victims")
def quality_of_service_does_not_protect(rule: Any, others: Sequence[Pod]) -> Any:
    """Treats all pods as Burstable."""
    return rule(others=[replace(one, qos="Burstable") for one in others])


@seeds("NODE-ALLOC-010").after(Preemption, "victims")
def guaranteed_pods_are_evicted_first(victims: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Reverses the order of eviction."""
    return victims[::-1]


@seeds("NODE-ALLOC-010").around(Preemption, "victims")
def lesser_classes_are_evicted_as_a_whole(rule: Any, others: Sequence[Pod]) -> Any:
    """Evicts all Burstable pods if a Guaranteed one must go."""
    victims = rule()
    if all(one.qos != "Guaranteed" for one in victims):
        return victims
    kept = [one for one in others if one.qos == "Burstable" and one not in victims]
    return (*kept, *victims)


@seeds("NODE-ALLOC-011").replace(preemption, "may_preempt", lambda *_: True)
def critical_pods_evict_one_another() -> None:
    """Lets critical pods evict pods of any priority."""


@seeds("NODE-ALLOC-011").after(preemption, "may_preempt")
def critical_pods_are_never_evicted(_: Any, other: Pod) -> bool:
    """Never evicts a critical pod."""
    return not preemption.is_critical(other)


@seeds("NODE-ALLOC-011").around(Preemption, "victims")
def pods_are_evicted_in_vain(rule: Any) -> Any:
    """Admits critical pods even if nothing makes enough room."""
    try:
        return rule()
    except AdmissionError:
        return ()


@seeds("NODE-ALLOC-012").after(Preemption, "distance", lambda _: 0.0)
def small_pods_are_evicted_first() -> None:
    """Evicts pods that request little, however much is missing."""


@seeds("NODE-ALLOC-012").after(Preemption, "size", lambda size: size[::-1])
def pods_with_few_cpus_are_evicted_first() -> None:
    """Compares CPUs before memory."""


@seeds("NODE-ALLOC-012").after(Preemption, "size", lambda size: (-size[0], -size[1]))
def large_pods_are_evicted_first() -> None:
    """Evicts pods with large requests among those that leave the same."""


@seeds("NODE-ALLOC-013").replace(node, "REASON", "Evicted")
def preempted_pods_have_the_reason_of_evicted_ones() -> None:
    """Gives the reason of pods that are evicted under pressure."""


@seeds("NODE-ALLOC-013").replace(node, "MESSAGE", "")
def preempted_pods_do_not_say_why() -> None:
    """Gives no message."""


# Pods after a restart, and after preemption


@seeds("NODE-ALLOC-014").around(StartedNode, "__init__")
def pods_count_before_they_are_admitted_again(rule: Any, self: StartedNode) -> None:
    """Counts all pods on the node from the start on."""
    rule()
    self.admitted = {*self.pods}


@seeds("NODE-ALLOC-015").around(StartedNode, "admit")
def preempted_pods_keep_their_resources(rule: Any, self: StartedNode) -> Any:
    """Leaves preempted pods on the node."""
    before = dict(self.pods)
    answer = rule()
    self.pods |= {one.uid: before[one.uid] for one in answer.preempted}
    return answer
