"""Violators of the requirements of the static CPU policy: QoS classes, pods as a whole, cores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import node, startup
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.topology import CPUTopology, union
from numaproof.reference.deviations.assignment import FreeCoreByAverage
from numaproof.reference.pods import qos, quantity
from numaproof.reference.pods.pod import Pod
from numaproof.reference.pods.pod_level import PodRules
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-static")


# CPU-STATIC-016 and -026: the QoS class


def _members(changes: Changes, change: Callable[[tuple[PodContainer, ...]], Any]) -> None:
    """Lets other containers than a pod's decide its class."""

    def class_of(original: Any, containers: tuple[PodContainer, ...]) -> Any:
        return original(containers if len(containers) == 1 else change(containers))

    changes.around(qos, "class_of", class_of)


def _with_init_resources(changes: Changes, some: dict[str, str]) -> None:
    """Takes it that every init container requests these amounts, and is limited to them."""
    _members(
        changes,
        lambda containers: tuple(
            replace(one, requests={**one.requests, **some}, limits={**one.limits, **some})
            if one.init
            else one
            for one in containers
        ),
    )


@seeds("CPU-STATIC-016")
def the_memory_of_init_containers_does_not_decide_the_class(changes: Changes) -> None:
    """Wants of an init container only that its CPUs are limited."""
    _with_init_resources(changes, {"memory": "1Mi"})


@seeds("CPU-STATIC-016")
def the_cpu_of_init_containers_does_not_decide_the_class(changes: Changes) -> None:
    """Wants of an init container only that its memory is limited."""
    _with_init_resources(changes, {"cpu": "1"})


@seeds("CPU-STATIC-016")
def sidecars_do_not_decide_the_class(changes: Changes) -> None:
    """Goes through app containers and those init containers that come to an end."""
    _members(changes, lambda containers: tuple(one for one in containers if not one.sidecar))


@seeds("CPU-STATIC-016")
def init_containers_that_ask_for_nothing_do_not_decide_the_class(changes: Changes) -> None:
    """Passes init containers over that have no resources at all."""
    _members(
        changes,
        lambda containers: tuple(
            one for one in containers if not one.init or one.requests or one.limits
        ),
    )


def _by_sum(changes: Changes, resource: str) -> None:
    """Compares what all containers together request of a resource with what they limit."""

    def amount(quantities: Any) -> Any:
        return quantity.parse(quantities.get(resource, 0))

    def class_of(original: Any, containers: tuple[PodContainer, ...]) -> Any:
        if not all(amount(one.limits) for one in containers):
            return original(containers)
        asked = sum(amount(one.requests) for one in containers)
        if asked != sum(amount(one.limits) for one in containers):
            return original(containers)
        alike = [
            replace(one, requests={**one.requests, resource: one.limits[resource]})
            for one in containers
        ]
        return original(tuple(alike))

    changes.around(
        PodRules,
        "qos_class",
        class_of,
    )


@seeds("CPU-STATIC-026")
def the_sum_of_the_memory_decides_the_class(changes: Changes) -> None:
    """Compares memory for the pod as a whole, and CPUs container by container."""
    _by_sum(changes, "memory")


# CPU-STATIC-017: pods with resources of their own


def _pods(changes: Changes, change: Callable[[Any, Pod, Any], Pod]) -> None:
    """Lets `change` make another pod of a manifest, given how to read one."""
    for reader in (node, startup):
        changes.around(
            reader,
            "read_pod",
            lambda original, manifest, *rest: change(
                lambda other: original(other, *rest), original(manifest, *rest), manifest
            ),
        )


@seeds("CPU-STATIC-017")
def pod_level_memory_alone_does_not_keep_containers_unpinned(changes: Changes) -> None:
    """Looks for pod-level CPUs, not for pod-level resources."""

    def kept(_read: Any, pod: Pod, manifest: Any) -> Pod:
        own = manifest["spec"].get("resources") or {}
        named = {**(own.get("requests") or {}), **(own.get("limits") or {})}
        return pod if "cpu" in named else replace(pod, shared_pool=False)

    _pods(changes, kept)


@seeds("CPU-STATIC-017")
def init_containers_of_pods_with_resources_are_pinned(changes: Changes) -> None:
    """Keeps app containers off exclusive CPUs, and forgets those that start before them."""

    def due(original: Any, pod: Pod, container: PodContainer) -> Any:
        if pod.shared_pool and container.init:
            return original(replace(pod, shared_pool=False), container)
        return original(pod, container)

    changes.around(Pod, "exclusive_cpus", due)


# CPU-STATIC-024: a class that the status names


def _given(changes: Changes, believed: Callable[[str, str], bool]) -> None:
    """Believes a class in the status only at times, by it and by what the resources say."""

    def judged(read: Any, pod: Pod, manifest: Any) -> Pod:
        own = read({**manifest, "status": {}})
        return pod if believed(pod.qos, own.qos) else own

    _pods(changes, judged)


def _rank(qos_class: str) -> int:
    return {"Guaranteed": 2, "Burstable": 1}.get(qos_class, 0)


@seeds("CPU-STATIC-024")
def a_class_in_the_status_only_lowers(changes: Changes) -> None:
    """Trusts the status no more than the resources."""
    _given(changes, lambda given, own: _rank(given) <= _rank(own))


# CPU-STATIC-023: cores of different sizes


def _free_cores(changes: Changes, size: Callable[[CPUTopology], int]) -> None:
    """Takes a core for a free one if so many of its CPUs are free."""

    def free_cores(original: Any, self: Any, free: int) -> Any:
        cores, wanted = self.topology.cores, size(self.topology)
        found = original(self, free)
        if self.topology.has_even_cores:
            return found
        partly = [
            core for core in cores.values() if core & ~free and (core & free).bit_count() == wanted
        ]
        return [*partly, *(core for core in found if core not in partly)]

    for rule in (Assignment, FreeCoreByAverage):
        changes.around(rule, "free_cores", free_cores)


@seeds("CPU-STATIC-023")
def a_core_is_free_by_the_size_of_the_smallest(changes: Changes) -> None:
    """Divides CPUs by cores, and lets what half a core has free pass for a whole one."""
    _free_cores(changes, lambda topology: min(map(int.bit_count, topology.cores.values())))


@seeds("CPU-STATIC-023")
def a_core_is_free_by_the_size_of_the_first(changes: Changes) -> None:
    """Takes the first core for the measure of all."""
    _free_cores(changes, lambda topology: next(iter(topology.cores.values())).bit_count())


@seeds("CPU-STATIC-023")
def cores_with_an_offline_thread_are_never_whole(changes: Changes) -> None:
    """Compares a core's online CPUs with those of the largest core."""
    changes.around(
        CPUTopology,
        "complete_cores",
        lambda original, self, cpus: original(
            self,
            cpus
            & union(
                core for core in self.cores.values() if core.bit_count() == self.most_cpus_per_core
            ),
        ),
    )
