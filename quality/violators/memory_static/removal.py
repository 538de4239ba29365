"""Violators of the requirements of memory that is freed, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import state
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.memory.state import MemoryState

seeds = SubjectBugs("memory-static")


def _forgotten(held: MemoryState, uid: str, name: str) -> MemoryState:
    """The state in which a container has nothing, and what it had is nobody's."""
    left = {other: had for other, had in held.entries.get(uid, {}).items() if other != name}
    entries = {**held.entries, uid: left}
    if not left:
        del entries[uid]
    return dataclasses.replace(held, entries=entries)


@seeds("MEM-REMOVE-001")
def removed_pods_keep_memory_under_1_mebibyte(changes: Changes) -> None:
    """A plausible author counts what is freed in mebibytes, and rounds down."""

    def give_back(original: Any, nodes: Any, node: int, kind: str, size: int) -> int:
        before = nodes[node].tables[kind]
        given: int = original(nodes, node, kind, size)
        freed = nodes[node].tables[kind].free - before.free
        tables = {**nodes[node].tables, kind: before.take(-(freed >> 20 << 20))}
        nodes[node] = dataclasses.replace(nodes[node], tables=tables)
        return given

    changes.around(state, "give_back", give_back)


def _when_ended(changes: Changes, keeps: Callable[[Any], bool]) -> None:
    """Lets some containers that have ended keep their memory until their pod is gone."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        held = self.memory.state
        pod = self.pods.get(args.uid)
        answer = original(self, args)
        if args.container is not None and pod and keeps(pod.container(args.container)):
            self.memory.state = held
            self.memory.save()
        return answer

    changes.around(StartedNode, "remove", remove)


@seeds("MEM-REMOVE-002")
def ended_sidecars_keep_their_memory(changes: Changes) -> None:
    """A plausible author thinks that a sidecar ends only with its pod."""
    _when_ended(changes, lambda container: container.sidecar)


def _when_rejected(changes: Changes, leaks: Callable[[AdmissionError], bool]) -> None:
    """Lets a pod that is rejected leave its memory reserved, for some of the reasons."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod["metadata"]["uid"]
        try:
            return original(self, args)
        except AdmissionError as error:
            if leaks(error) and uid not in self.memory.state.pods:
                for name in tuple(self.memory.state.entries.get(uid, {})):
                    self.memory.state = _forgotten(self.memory.state, uid, name)
                self.memory.save()
            raise

    changes.around(StartedNode, "admit", admit)


@seeds("MEM-REMOVE-003")
def pods_rejected_for_their_affinity_leave_memory_reserved(changes: Changes) -> None:
    """A plausible author thinks that nothing is allocated before the affinity is judged."""
    _when_rejected(changes, lambda error: error.reason == "TopologyAffinityError")


@seeds("MEM-REMOVE-003")
def pods_rejected_by_other_managers_leave_memory_reserved(changes: Changes) -> None:
    """A plausible author has each manager undo its own failures."""
    _when_rejected(
        changes,
        lambda error: error.reason != "TopologyAffinityError" and "memorymanager" not in str(error),
    )
