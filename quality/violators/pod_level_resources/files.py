"""Violators of how pod-level resources are filled in, kept and written, one sentence each."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints.files import CheckpointFile
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.memory.state import MemoryState, give_back
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import pod_level, quantity
from numaproof.reference.pods.pod_level import PodRules
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("pod-level-resources")


def _as_one(changes: Changes, change: Callable[..., Any]) -> None:
    """Lets `change` make other defaults: original, own requests and limits, and containers."""
    changes.around(PodRules, "as_one", change)


def _together(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets other containers count for what is requested together."""
    changes.around(
        pod_level,
        "requested_together",
        lambda original, members: original(tuple(change(one) for one in members)),
    )


@seeds("NODE-PODLEVEL-017")
def pod_level_requests_add_init_containers_up(changes: Changes) -> None:
    """A plausible author sums up what all containers request."""
    _together(changes, lambda one: dataclasses.replace(one, init=False, sidecar=False))


@seeds("NODE-PODLEVEL-017")
def pod_level_requests_take_sidecars_for_init_containers(changes: Changes) -> None:
    """A plausible author forgets that sidecars run beside the app containers."""
    _together(changes, lambda one: dataclasses.replace(one, sidecar=False))


def _limits_together(members: Any) -> dict[str, str]:
    """The CPUs and the memory that containers limit together."""
    limiting = tuple(dataclasses.replace(one, requests=one.limits) for one in members)
    return pod_level.requested_together(limiting)


@seeds("NODE-PODLEVEL-018")
def pod_level_limits_have_defaults_if_any_container_limits(changes: Changes) -> None:
    """A plausible author leaves containers without a limit out of the sum."""

    def as_one(original: Any, requests: Any, limits: Any, members: Any) -> Any:
        found = original(requests, limits, members)
        more = dict(found.limits)
        for name, amount in _limits_together(members).items():
            if name in found.requests and name not in more:
                more[name] = max(amount, found.requests[name], key=quantity.parse)
        return dataclasses.replace(found, limits=more) if requests or limits else found

    _as_one(changes, as_one)


# The last container, and the files


@seeds("NODE-PODLEVEL-014")
def memory_of_a_budget_returns_with_its_first_container(changes: Changes) -> None:
    """A plausible author releases the pod's blocks whenever one of its containers ends."""

    def release(original: Any, self: MemoryState, uid: str, name: str) -> Any:
        if self.of(uid, name) is None or not self.pods.get(uid):
            return original(self, uid, name)
        nodes = dict(self.nodes)
        for block in self.pods[uid] or ():
            size = block.size
            for node in NUMASet.from_mask(block.nodes):
                size -= give_back(nodes, node, block.kind, size)
        freed = MemoryState(nodes, self.entries, {**self.pods, uid: ()}, self.reuse)
        return original(freed, uid, name)

    changes.around(MemoryState, "release", release)


def _kept(changes: Changes, restore: Callable[[StartedNode, Any, Any], None]) -> None:
    """Lets a pod with a budget keep something when its last container ends, until it leaves."""

    def remove(original: Any, self: StartedNode, args: Any) -> Any:
        cpus, memory = self.cpus.state, self.memory.state
        done = original(self, args)
        if args.container is not None:
            if args.uid in cpus.pods and args.uid not in self.cpus.state.pods:
                restore(self, cpus, None)
            if args.uid in memory.pods and args.uid not in self.memory.state.pods:
                restore(self, None, memory)
            self.save()
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("NODE-PODLEVEL-014")
def cpus_of_a_budget_stay_until_the_pod_leaves_the_node(changes: Changes) -> None:
    """A plausible author returns what a pod has as a whole when the pod is removed."""

    def restore(node: StartedNode, cpus: Any, _: Any) -> None:
        node.cpus.state = cpus or node.cpus.state

    _kept(changes, restore)


@seeds("NODE-PODLEVEL-014")
def memory_of_a_budget_stays_until_the_pod_leaves_the_node(changes: Changes) -> None:
    """A plausible author returns the CPUs with the last container, and forgets the memory."""

    def restore(node: StartedNode, _: Any, memory: Any) -> None:
        node.memory.state = memory or node.memory.state

    _kept(changes, restore)


def _written(changes: Changes, kind: type, change: Callable[[Any], Any]) -> None:
    """Lets the file of a manager hold a changed state."""
    changes.around(
        CheckpointFile,
        "write",
        lambda original, self, state: original(
            self, change(state) if isinstance(state, kind) else state
        ),
    )


@seeds("NODE-PODLEVEL-015")
def cpu_checkpoints_have_no_pod_entries(changes: Changes) -> None:
    """A plausible author writes what containers have, and nothing of pods."""
    _written(changes, CPUState, lambda state: dataclasses.replace(state, pods={}))
