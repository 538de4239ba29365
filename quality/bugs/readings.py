"""Bugs in how the reference reads a pod: exclusive CPUs, QoS class, effective requests.

Invariants that reused the reference's reading would share these bugs. They are active for whole
runs, and only invariants may catch them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.pods import containers, qos, quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer
    from quality.seeding import Changes

    Members = tuple[PodContainer, ...]

seeds = SubjectBugs("readings")

# Exclusive CPUs


@seeds("CPU-STATIC-001").around(Pod, "exclusive_cpus")
def parts_of_cpus_are_rounded_up_to_exclusive_ones(rule: Any, self: Pod, container: Any) -> Any:
    whole = quantity.value(container.requests.get("cpu", 0))
    return rule() or (whole if self.qos == "Guaranteed" else 0)


@seeds("CPU-STATIC-001").around(Pod, "exclusive_cpus")
def whole_cpus_are_exclusive_in_every_class(rule: Any, self: Pod) -> Any:
    return rule(self=replace(self, qos="Guaranteed"))


@seeds("CPU-STATIC-002").around(Pod, "exclusive_cpus")
def sidecars_have_no_exclusive_cpus(rule: Any, container: PodContainer) -> Any:
    return 0 if container.sidecar else rule()


# QoS class


@seeds("CPU-STATIC-001").after(qos, "class_of")
def burstable_pods_are_guaranteed(qos_class: Any) -> Any:
    return "Guaranteed" if qos_class == "Burstable" else qos_class


@seeds("CPU-STATIC-001").around(qos, "class_of")
def init_containers_are_left_out_of_the_class(rule: Any, containers: Members) -> Any:
    return rule(containers=tuple(one for one in containers if not one.init))


@seeds("CPU-STATIC-001")
def memory_does_not_count_for_the_class(changes: Changes) -> None:
    def with_memory(container: PodContainer) -> PodContainer:
        requests, limits = ({**of, "memory": 1} for of in (container.requests, container.limits))
        return replace(container, requests=requests, limits=limits)

    def by_cpu(rule: Any, containers: Members) -> Any:
        return rule(containers=tuple(map(with_memory, containers)))

    changes.around(qos, "class_of", by_cpu)


# Effective requests


@shape(containers, "peak")
def _adding_up(change: Callable[[Members], Members], rule: Any, containers: Any) -> Any:
    """Replaces the containers whose peak request is computed."""
    return rule(containers=change(containers))


@seeds("CPU-HINT-013").by(_adding_up)
def sidecars_do_not_count_for_the_effective_request(members: Members) -> Any:
    return tuple(one for one in members if not one.sidecar)


@seeds("CPU-HINT-012").by(_adding_up)
def init_containers_do_not_count_for_the_effective_request(members: Members) -> Any:
    return tuple(one for one in members if not one.runs_to_completion)


@seeds("CPU-HINT-012").by(_adding_up)
def init_containers_add_to_the_effective_request(members: Members) -> Any:
    return tuple(replace(one, init=False) for one in members)


@seeds("CPU-HINT-012").by(_adding_up)
def the_largest_container_alone_is_the_effective_request(members: Members) -> Any:
    return tuple(replace(one, init=True, sidecar=False) for one in members)
