"""Violators of what is in the shared pool, while CPUs are handed out."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu.assignment import Assignment, cores_in_order
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-pool")


def _seen(changes: Changes, change: Callable[[str, Any, Any, Any, int], int]) -> None:
    """Lets containers without exclusive CPUs run on another set than the shared pool.

    `change` is given the operation, the node, the pod, the container and the shared pool.
    """
    calls: list[tuple[str, Any]] = []

    def enter(operation: str) -> None:
        def entering(original: Any, self: Any, args: Any) -> Any:
            calls.append((operation, self))
            return original(self, args)

        changes.around(StartedNode, operation, entering)

    def where(original: Any, self: Any, uid: str, name: str) -> Any:
        cpus = original(self, uid, name)
        if self.of(uid, name) is not None or not calls:
            return cpus
        operation, node = calls[-1]
        if not node.setup.cpu:
            return cpus
        pod = node.pods[uid]
        return change(operation, node, pod, pod.container(name), cpus)

    for operation in ("admit", "state", "reconcile"):
        enter(operation)
    changes.around(CPUState, "where", where)


# Fractions of CPUs


def _fractions(changes: Changes, change: Callable[[Any, Any], int]) -> None:
    """Lets containers of Guaranteed pods with a fraction of a CPU be due exclusive ones."""

    def exclusive(original: Any, self: Any, container: Any) -> Any:
        count = original(self, container)
        amount = quantity.parse(container.requests.get("cpu", 0))
        guaranteed = self.qos == "Guaranteed" and not self.shared_pool and self.budget is None
        if count or not guaranteed or amount.denominator == 1:
            return count
        return change(container, amount)

    changes.around(Pod, "exclusive_cpus", exclusive)


@seeds("CPU-POOL-004")
def fractions_of_sidecars_are_rounded_up(changes: Changes) -> None:
    """A sidecar runs beside the others, and must not disturb them."""
    _fractions(changes, lambda container, amount: math.ceil(amount) if container.sidecar else 0)


@seeds("CPU-POOL-004")
def fractions_of_init_containers_are_rounded_up(changes: Changes) -> None:
    """An init container's CPUs are reused, so it may have more of them."""
    _fractions(changes, lambda container, amount: math.ceil(amount) if container.passes else 0)


@seeds("CPU-POOL-004")
def fractions_run_on_the_exclusive_cpus_of_their_pod(changes: Changes) -> None:
    """Containers of one pod run together."""

    def change(_operation: str, node: Any, pod: Any, _container: Any, cpus: int) -> int:
        if pod.qos != "Guaranteed":
            return cpus
        return union(node.cpus.state.exclusive.get(pod.uid, {}).values()) or cpus

    _seen(changes, change)


@seeds("CPU-POOL-004")
def fractions_run_on_the_nodes_of_their_affinity(changes: Changes) -> None:
    """The Topology Manager's affinity is for every container of a Guaranteed pod."""

    def change(_operation: str, node: Any, pod: Any, container: Any, cpus: int) -> int:
        kept = node.affinity.get((pod.uid, container.name))
        if pod.qos != "Guaranteed" or kept is None or kept.numa is None:
            return cpus
        near: int = cpus & node.setup.cpu.aligned(kept)
        return near or cpus

    _seen(changes, change)


# CPUs that are shared and exclusive at once


def _left_in_the_pool(changes: Changes, stays: Callable[[Any], bool]) -> None:
    """Lets the exclusive CPUs of some containers be shared besides."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        after = original(self, state, pod, *rest)
        if stays(rest[0]):
            own = after.of(pod.uid, rest[0].name) or 0
            after = dataclasses.replace(after, shared=after.shared | own)
        return after

    def available(original: Any, self: Any, state: Any) -> Any:
        return original(self, state) & ~union(cpus for _, _, cpus in state)

    changes.around(StaticCPUPolicy, "allocate", allocate)
    changes.around(StaticCPUPolicy, "available", available)


@seeds("CPU-POOL-005")
def cpus_of_init_containers_stay_shared(changes: Changes) -> None:
    """An init container ends soon, so the pool is left as it is."""
    _left_in_the_pool(changes, lambda container: container.passes)


@seeds("CPU-POOL-005")
def cpus_of_sidecars_stay_shared(changes: Changes) -> None:
    """A sidecar helps the others, and shares its CPUs with them."""
    _left_in_the_pool(changes, lambda container: container.sidecar)


@seeds("CPU-POOL-006")
def broken_cores_are_taken_whole(changes: Changes) -> None:
    """A core is free if as many of its CPUs are free as cores have on average."""

    def whole_cores(original: Any, self: Any, progress: Any) -> Any:
        topology = self.topology
        if topology.has_even_cores:
            return original(self, progress)
        free = progress.free
        return progress.take_units(
            topology.cores[core]
            for core in cores_in_order(topology, free)
            if (topology.cores[core] & free).bit_count() >= topology.cpus_per_core
        )

    changes.around(Assignment, "whole_cores", whole_cores)


# CPUs that get lost


def _lost(changes: Changes, lost: Callable[[str, str], bool]) -> None:
    """Lets some containers' CPUs not come back when these are released."""

    def release(original: Any, self: Any, uid: str, name: str) -> Any:
        after = original(self, uid, name)
        if after is self or not lost(uid, name):
            return after
        return dataclasses.replace(after, shared=self.shared)

    changes.around(CPUState, "release", release)


@seeds("CPU-POOL-007")
def cpus_of_pods_that_left_during_a_restart_are_lost(changes: Changes) -> None:
    """Entries of pods that are gone are dropped from the checkpoint."""
    starting: list[bool] = []

    def start(original: Any, *args: Any) -> Any:
        starting.append(True)
        try:
            return original(*args)
        finally:
            starting.clear()

    changes.around(startup, "start", start)
    _lost(changes, lambda uid, name: bool(starting))


def _removing(changes: Changes, gone: Callable[[Any, Any], set[tuple[str, str]]]) -> None:
    """Lets the CPUs of some containers be lost; `gone` tells them by the pod and the request."""
    places: set[tuple[str, str]] = set()

    def remove(original: Any, self: Any, args: Any) -> Any:
        pod = self.pods.get(args.uid)
        places.update(gone(pod, args) if pod else ())
        return original(self, args)

    changes.around(StartedNode, "remove", remove)
    _lost(changes, lambda uid, name: (uid, name) in places)


@seeds("CPU-POOL-007")
def cpus_that_only_init_containers_had_are_lost(changes: Changes) -> None:
    """A pod gives back what its running containers have."""
    _removing(
        changes,
        lambda pod, args: {(pod.uid, each.name) for each in pod.containers if each.passes},
    )


@seeds("CPU-POOL-007")
def cpus_of_a_container_that_ends_alone_are_lost(changes: Changes) -> None:
    """CPUs come back with their pod, which does not have them any more."""
    _removing(changes, lambda pod, args: {(pod.uid, args.container)} if args.container else set())


# An empty pool


@seeds("CPU-POOL-008")
def a_request_for_the_whole_machine_gets_it(changes: Changes) -> None:
    """Whoever asks for every CPU of an idle machine is given the machine."""

    def allocate(original: Any, self: Any, state: Any, pod: Any, *rest: Any) -> Any:
        every = self.topology.cpus
        if pod.exclusive_cpus(rest[0]) == every.bit_count() and state.shared == every:
            self = dataclasses.replace(self, reserved=0, broken=0)
        return original(self, state, pod, *rest)

    changes.around(StaticCPUPolicy, "allocate", allocate)
