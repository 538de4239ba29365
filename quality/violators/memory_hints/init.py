"""Violators of the requirements of memory of init containers and at restarts, each breaking one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, ReusableMemory
from numaproof.reference.pods import qos
from numaproof.reference.topology.hints import Supply
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-hints")


def _keep_blocks(changes: Changes, keeps: Callable[[Any], bool]) -> None:
    """Lets some containers take over nothing of the blocks of init containers before them."""
    changes.around(
        policies,
        "shrunk",
        lambda original, held, pod, container, blocks: (
            held if keeps(container) else original(held, pod, container, blocks)
        ),
    )


def _with_reuse(changes: Changes, reusable: Callable[[Any, Any, Any], Any]) -> None:
    """Lets a container find other memory to take again.

    `reusable` is given the state, the pod and the container.
    """

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        offered = dataclasses.replace(held, reuse=reusable(held, pod, container))
        after = original(self, offered, pod, container, affinity)
        return held if after is offered else after

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-INIT-001")
def sidecars_do_not_reuse_memory_of_init_containers(changes: Changes) -> None:
    """A plausible author keeps sidecars apart from all that ends."""
    _with_reuse(
        changes,
        lambda held, pod, container: (
            ReusableMemory(pod.uid)
            if container.sidecar and held.reuse.uid == pod.uid
            else held.reuse
        ),
    )
    _keep_blocks(changes, lambda container: container.sidecar)


@seeds("MEM-INIT-003")
def init_containers_keep_blocks_that_are_reused(changes: Changes) -> None:
    """A plausible author leaves the books of earlier containers alone."""
    _keep_blocks(changes, lambda container: True)


@seeds("MEM-INIT-003")
def what_is_left_of_init_containers_is_freed_for_apps(changes: Changes) -> None:
    """A plausible author frees what nobody reuses when the app containers start."""

    def allocate(original: Any, self: Any, held: Any, pod: Any, *rest: Any) -> Any:
        after = original(self, held, pod, *rest)
        if after is not held and not rest[0].init:
            for container in pod.containers:
                if container.passes and after.of(pod.uid, container.name):
                    after = after.release(pod.uid, container.name)
                    after = after.with_blocks(pod.uid, container.name, ())
        return after

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-INIT-004")
def memory_of_init_containers_is_reused_by_the_next_pod(changes: Changes) -> None:
    """A plausible author keeps what may be reused by nodes, and not by pod."""
    _with_reuse(
        changes,
        lambda held, pod, container: (
            ReusableMemory(pod.uid, held.reuse.sizes)
            if held.reuse.uid in held.entries
            else held.reuse
        ),
    )


@seeds("MEM-INIT-005")
def memory_of_sidecars_is_reused_by_apps(changes: Changes) -> None:
    """A plausible author takes sidecars for init containers like any other."""
    changes.around(
        policies,
        "reused",
        lambda original, reuse, pod, container, blocks: original(
            reuse, pod, dataclasses.replace(container, sidecar=False), blocks
        ),
    )


@seeds("MEM-INIT-005")
def memory_of_sidecars_is_reused_by_init_containers(changes: Changes) -> None:
    """A plausible author thinks of sidecars beside app containers, and not while the pod starts."""
    own: list[ReusableMemory] = []

    def reusable(held: Any, pod: Any, container: Any) -> Any:
        reuse = held.reuse
        own[:] = [reuse]
        if not container.passes:
            return reuse
        sizes = dict(reuse.sizes) if reuse.uid == pod.uid else {}
        for other in pod.containers:
            if other.name == container.name:
                break
            for block in (held.of(pod.uid, other.name) or ()) if other.sidecar else ():
                place = (block.nodes, block.kind)
                sizes[place] = sizes.get(place, 0) + block.size
        return ReusableMemory(pod.uid, sizes)

    _with_reuse(changes, reusable)
    changes.around(policies, "reused", lambda original, reuse, *rest: original(own[0], *rest))


def _guaranteed_without(changes: Changes, left_out: Callable[[Any], bool]) -> None:
    """Lets the memory of pods be pinned that are Guaranteed but for some containers."""

    def served(original: Any, pod: Any) -> bool:
        counted = tuple(one for one in pod.containers if not left_out(one))
        alike = pod.budget is None and not pod.shared_pool and pod.qos != "BestEffort"
        return bool(original(pod)) or (alike and qos.class_of(counted) == "Guaranteed")

    changes.around(policies, "is_served", served)


@seeds("MEM-INIT-006")
def sidecars_do_not_count_towards_the_class(changes: Changes) -> None:
    """A plausible author leaves sidecars to whoever put them in."""
    _guaranteed_without(changes, lambda container: container.sidecar)


@seeds("MEM-INIT-007")
def memory_of_init_containers_is_reused_on_any_nodes(changes: Changes) -> None:
    """A plausible author keeps what may be reused by memory type alone."""
    changes.replace(
        ReusableMemory,
        "of",
        lambda self, uid, nodes, kind: (
            sum(size for (_, had), size in self.sizes.items() if had == kind)
            if uid == self.uid
            else 0
        ),
    )


@seeds("MEM-INIT-007")
def hints_count_memory_of_init_containers_on_every_node(changes: Changes) -> None:
    """A plausible author adds what may be reused to whatever nodes are looked at."""

    def demand(original: Any, *args: Any) -> Any:
        described = original(*args)
        needs = tuple(
            dataclasses.replace(
                need,
                reusable=tuple(
                    Supply(1 << node, sum(supply.amount for supply in need.reusable))
                    for node in (described.nodes if need.reusable else ())
                ),
            )
            for need in described.needs
        )
        return dataclasses.replace(described, needs=needs)

    changes.around(MemoryState, "demand", demand)
