"""Violators of the requirements of memory at restarts, each breaking one sentence."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import memory as checkpoint
from numaproof.reference.errors import AllocationError, StartError
from numaproof.reference.memory import hints, requests
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.policy import RestoreError, StaticMemoryPolicy
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.memory.state import MemoryState

seeds = SubjectBugs("memory-hints")


def _restored(changes: Changes, change: Callable[[MemoryState], MemoryState]) -> None:
    """Lets a restart begin with another state than the one that was saved."""
    changes.around(
        StaticMemoryPolicy,
        "restore",
        lambda original, self, held: change(original(self, held)),
    )


def _noting(changes: Changes, name: str, what: Callable[[Any, Any], Any]) -> None:
    """Notes something about a start in the Memory Manager that it makes."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        node = original(args, *rest)
        setattr(node.memory, name, what(node, args))
        return node

    changes.around(startup, "start", start)


# What runs on


@seeds("MEM-RESTART-001")
def groups_are_forgotten_at_a_restart(changes: Changes) -> None:
    """A plausible author saves which memory a container has, and not with which nodes."""

    def alone(held: MemoryState) -> MemoryState:
        nodes = {
            node: dataclasses.replace(memory, cells=1 << node)
            for node, memory in held.nodes.items()
        }
        return dataclasses.replace(held, nodes=nodes)

    def agree(original: Any, self: Any, real: Any, expected: Any) -> bool:
        known = {
            node: dataclasses.replace(memory, cells=expected[node].cells)
            if node in expected
            else memory
            for node, memory in real.items()
        }
        same: bool = original(self, known, expected)
        return same

    _restored(changes, alone)
    changes.around(StaticMemoryPolicy, "agree", agree)


@seeds("MEM-RESTART-001")
def affinities_are_lost_at_a_restart(changes: Changes) -> None:
    """A plausible author asks for no hints for containers that run already."""
    _noting(
        changes,
        "running",
        lambda node, _: {(uid, name) for uid, name, _ in node.memory.state},
    )

    def hinted(original: Any, self: Any, pod: Any, container: Any) -> Any:
        place = (pod.uid, container.name if container else "")
        return {} if place in getattr(self, "running", ()) else original(self, pod, container)

    changes.around(MemoryManager, "hints", hinted)


def _gone(node: Any, args: Any) -> set[str]:
    present = {pod["metadata"]["uid"] for pod in args.pods}
    return {uid for uid in node.memory.state.entries if uid not in present}


def _with_gone(self: Any, pods: Any) -> dict[str, Any]:
    """The pods on the node, and those that left while the kubelet was down."""
    found = dict(pods)
    for uid in getattr(self, "gone", ()):
        own = tuple(PodContainer(name, {}, {}) for name in self.state.entries.get(uid, {}))
        found.setdefault(uid, Pod(uid, own, "Guaranteed"))
    return found


@seeds("MEM-RESTART-002")
def groups_of_pods_that_left_during_a_restart_stay(changes: Changes) -> None:
    """A plausible author gives the bytes back, and not the nodes."""

    def remove_stale_state(original: Any, self: Any, pods: Any, when: Any) -> None:
        original(self, _with_gone(self, pods), when)
        before = self.state.nodes
        for uid in getattr(self, "gone", ()):
            for name in tuple(self.state.entries.get(uid, {})) if uid not in pods else ():
                self.release(uid, name)
        nodes = {
            node: dataclasses.replace(
                memory, assignments=before[node].assignments, cells=before[node].cells
            )
            for node, memory in self.state.nodes.items()
        }
        if nodes != dict(self.state.nodes):
            self.state = dataclasses.replace(self.state, nodes=nodes)

    _noting(changes, "gone", _gone)
    changes.around(MemoryManager, "remove_stale_state", remove_stale_state)


@seeds("MEM-RESTART-003")
def init_containers_take_back_what_was_reused(changes: Changes) -> None:
    """A plausible author finds that an init container has less than it asks for, and adds to it."""

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        had = held.of(pod.uid, container.name) if container.passes else None
        amounts = requests.part(pod, container) if had else {}
        for block in had or ():
            missing = amounts.get(block.kind, 0) - block.size
            if missing > 0:
                if not policies.satisfies(held, block.nodes, {block.kind: missing}):
                    raise AllocationError(
                        "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes "
                        "with enough memory is available"
                    )
                held = held.reserve(block, missing)
        return original(self, held, pod, container, affinity)

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-RESTART-004")
def memory_on_several_nodes_is_not_judged_again(changes: Changes) -> None:
    """A plausible author gives a hint where there is one node to name."""
    changes.around(
        hints,
        "regenerated",
        lambda original, blocks, amounts: (
            {}
            if any(block.nodes & (block.nodes - 1) for block in blocks)
            else original(blocks, amounts)
        ),
    )


# What has changed


@seeds("MEM-RESTART-005")
def running_pods_without_a_checkpoint_stay_unpinned(changes: Changes) -> None:
    """A plausible author serves only pods that are new."""

    def unknown(node: Any, args: Any) -> set[str]:
        present = {pod["metadata"]["uid"] for pod in args.pods}
        return present - set(node.memory.state.entries)

    def allocate(original: Any, self: Any, pod: Any, *rest: Any) -> None:
        if pod.uid not in getattr(self, "unknown", ()):
            original(self, pod, *rest)

    _noting(changes, "unknown", unknown)
    changes.around(MemoryManager, "allocate", allocate)


def _remembering(changes: Changes, what: Callable[[Any, Any], Any]) -> None:
    """Lets a restart be refused if something is not as it was at the start before.

    `what` says of a request and its machine what that is; None for nothing.
    """

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        folder = Path(args.state_dir)
        path = folder / "memory_manager_machine"
        known = path.read_text() if path.exists() else None
        if not (folder / checkpoint.FILE_NAME).exists():
            known = None
        node = original(args, release, discover)
        found = what(args, args.machine or discover(args.root, release))
        if found is None:
            return node
        text = json.dumps(found, sort_keys=True)
        if known not in (None, text):
            raise StartError(
                "memory",
                "start memory manager error: [memorymanager] the expected machine state is "
                "different from the real one",
            )
        path.write_text(text)
        return node

    changes.around(startup, "start", start)


def _policy(args: Any) -> str:
    return str(args.config.get("memoryManagerPolicy") or "None")


@seeds("MEM-RESTART-006")
def none_policy_refuses_changed_memory(changes: Changes) -> None:
    """A plausible author compares the memory of the nodes whatever the policy is."""

    def memory(args: Any, machine: Any) -> Any:
        if _policy(args) != "None":
            return None
        return [[node.node_id, node.memory] for node in machine.topology or ()]

    _remembering(changes, memory)


@seeds("MEM-RESTART-007")
def another_reservation_is_taken_over_at_a_restart(changes: Changes) -> None:
    """A plausible author compares the memory that nodes have, and not what is reserved."""

    def totals(nodes: Any) -> Any:
        return {
            node: {kind: table.total for kind, table in memory.tables.items()}
            for node, memory in nodes.items()
        }

    def restore(original: Any, self: Any, held: MemoryState) -> MemoryState:
        try:
            restored: MemoryState = original(self, held)
        except RestoreError:
            if not held.nodes or totals(held.nodes) != totals(self.empty):
                raise
            anew = dataclasses.replace(held, nodes=self.empty)
            for uid, _, blocks in held:
                for block in () if held.pods.get(uid) else blocks:
                    anew = anew.reserve(block, block.size)
            return anew
        return restored

    changes.around(StaticMemoryPolicy, "restore", restore)
