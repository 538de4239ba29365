"""Bugs in how the reference reads a pod: due CPUs, QoS class, effective requests.

Invariants that took their reading from the reference would share them. They are seeded for whole
runs (`invariant_hunt`), and only the invariants may catch them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numaproof.reference.pods import containers, qos, quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.qos import QoSClass
    from quality.seeding import Changes

    Members = tuple[PodContainer, ...]
    Due = Callable[[Pod, PodContainer], int]
    Classify = Callable[[Members], QoSClass]

seeds = SubjectBugs("readings")

# Exclusive CPUs


@seeds("CPU-STATIC-001")
def parts_of_cpus_are_rounded_up_to_exclusive_ones(changes: Changes) -> None:
    def rounded(original: Due, pod: Pod, container: PodContainer) -> int:
        whole = quantity.value(container.requests.get("cpu", 0))
        return original(pod, container) or (whole if pod.qos == "Guaranteed" else 0)

    changes.around(Pod, "exclusive_cpus", rounded)


@seeds("CPU-STATIC-001")
def whole_cpus_are_exclusive_in_every_class(changes: Changes) -> None:
    def in_every(original: Due, pod: Pod, container: PodContainer) -> int:
        return original(replace(pod, qos="Guaranteed"), container)

    changes.around(Pod, "exclusive_cpus", in_every)


@seeds("CPU-STATIC-002")
def sidecars_have_no_exclusive_cpus(changes: Changes) -> None:
    def others(original: Due, pod: Pod, container: PodContainer) -> int:
        return 0 if container.sidecar else original(pod, container)

    changes.around(Pod, "exclusive_cpus", others)


# QoS class


@seeds("CPU-STATIC-001")
def burstable_pods_are_guaranteed(changes: Changes) -> None:
    def better(original: Classify, members: Members) -> QoSClass:
        found = original(members)
        return "Guaranteed" if found == "Burstable" else found

    changes.around(qos, "class_of", better)


@seeds("CPU-STATIC-001")
def init_containers_are_left_out_of_the_class(changes: Changes) -> None:
    def of_apps(original: Classify, members: Members) -> QoSClass:
        return original(tuple(one for one in members if not one.init))

    changes.around(qos, "class_of", of_apps)


@seeds("CPU-STATIC-001")
def memory_does_not_count_for_the_class(changes: Changes) -> None:
    def with_memory(container: PodContainer) -> PodContainer:
        requests, limits = ({**of, "memory": 1} for of in (container.requests, container.limits))
        return replace(container, requests=requests, limits=limits)

    def by_cpu(original: Classify, members: Members) -> QoSClass:
        return original(tuple(map(with_memory, members)))

    changes.around(qos, "class_of", by_cpu)


# Effective requests


def _adding_up(changes: Changes, change: Callable[[Members], Members]) -> None:
    """Lets the containers be others where the reference adds up what they need at once."""
    changes.around(
        containers,
        "at_once",
        lambda original, members, amount: original(change(members), amount),
    )


@seeds("CPU-HINT-013")
def sidecars_do_not_count_for_the_effective_request(changes: Changes) -> None:
    _adding_up(changes, lambda members: tuple(one for one in members if not one.sidecar))


@seeds("CPU-HINT-012")
def init_containers_do_not_count_for_the_effective_request(changes: Changes) -> None:
    _adding_up(changes, lambda members: tuple(one for one in members if not one.passes))


@seeds("CPU-HINT-012")
def init_containers_add_to_the_effective_request(changes: Changes) -> None:
    _adding_up(changes, lambda members: tuple(replace(one, init=False) for one in members))


@seeds("CPU-HINT-012")
def the_largest_container_alone_is_the_effective_request(changes: Changes) -> None:
    _adding_up(
        changes,
        lambda members: tuple(replace(one, init=True, sidecar=False) for one in members),
    )
