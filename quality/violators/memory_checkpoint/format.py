"""Violators of the requirements of the memory checkpoint: whether a start takes the file."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import files, memory
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import Format
from numaproof.reference.errors import StartError
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, NodeMemory
from quality import checkpoint_changes
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable


seeds = SubjectBugs("memory-checkpoint")


def restored(changes: Changes, restore: Callable[..., Any]) -> None:
    """Lets `restore` read the file: given the original, the content, the policy, the formats."""
    changes.around(memory, "restore", restore)


format_read = partial(checkpoint_changes.format_read, "state.Memory")


def with_formats(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets files be read in other formats."""
    restored(
        changes,
        lambda original, content, policy, known: original(content, policy, change(known)),
    )


def _takes(changes: Changes, also: Callable[[Format, Any], bool]) -> None:
    """Lets files without ``data`` be taken where `also` says so."""
    changes.around(
        Format,
        "takes",
        lambda original, self, found: (
            original(self, found)
            or (self.structure.startswith("state.Memory") and also(self, found))
        ),
    )


# The checksum


@seeds("MEM-CHECKPOINT-001")
def wrong_memory_checksum_without_entries_is_taken(changes: Changes) -> None:
    """A plausible author verifies only what there is to lose."""
    _takes(changes, lambda _, found: not found["entries"])


@seeds("MEM-CHECKPOINT-005")
def null_machine_state_is_refused(changes: Changes) -> None:
    """A plausible author wants an object for the machine state."""
    _null(changes, "machineState", "NUMANodeMap")


def _null(changes: Changes, name: str, kind: str) -> None:
    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        document = parsed(content)
        text = document.get("data")
        inside = parsed(text.encode()) if isinstance(text, str) else {}
        if (name, None) in (inside or document).items():
            raise CheckpointError(f"json: cannot unmarshal null into Go value of type state.{kind}")
        return original(content, *rest)

    restored(changes, restore)


@seeds("MEM-CHECKPOINT-006", kubernetes="1.35")
def memory_checksum_may_be_missing_before_its_time(changes: Changes) -> None:
    """A plausible author treats both managers' checkpoints alike."""
    _takes(changes, lambda _, found: not found["checksum"])


_NEW_NAME = "state.MemoryManagerCheckpointV1"


@seeds("MEM-CHECKPOINT-007", kubernetes="1.36")
def own_name_of_1_36_is_not_taken(changes: Changes) -> None:
    """A plausible author hashes the structure by the one name that every release took."""

    def takes(original: Any, self: Format, found: Any) -> Any:
        if self.structure == _NEW_NAME:
            self = dataclasses.replace(self, takes_checksum_of=("state.MemoryManagerCheckpoint",))
        return original(self, found)

    changes.around(Format, "takes", takes)


def _takes_new_name(changes: Changes) -> None:
    _takes(
        changes,
        lambda self, found: found["checksum"] == files.checksum(self.dump(_NEW_NAME, found)),
    )


@seeds("MEM-CHECKPOINT-007")
def name_of_1_36_is_still_taken(changes: Changes) -> None:
    """A plausible author goes on taking what the release before wrote."""
    _takes_new_name(changes)


@seeds("MEM-CHECKPOINT-007", kubernetes="1.35")
def name_of_1_36_is_taken_before_its_time(changes: Changes) -> None:
    """A plausible author takes both names in every release."""
    _takes_new_name(changes)


# Files of other kinds


@seeds("MEM-CHECKPOINT-004")
def memory_checkpoint_with_pod_entries_is_refused(changes: Changes) -> None:
    """A plausible author forgets what 1.36 wrote with its gate on."""
    with_formats(
        changes,
        lambda known: dataclasses.replace(
            known, attempts=tuple(one for one in known.attempts if "V2" not in one.structure)
        ),
    )


@seeds("MEM-CHECKPOINT-004")
def missing_memory_checkpoint_is_refused_with_pods(changes: Changes) -> None:
    """A plausible author wants the file where pods are on the node already."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        static = args.config.get("memoryManagerPolicy") == "Static"
        there = Path(args.state_dir, memory.FILE_NAME).exists()
        node = original(args, *rest)
        if static and args.pods and not there:
            raise StartError("memory", "could not restore state from checkpoint: no such file")
        return node

    changes.around(startup, "start", start)


def _foreign(changes: Changes, configured: str, found: str) -> None:
    def restore(original: Any, content: bytes, policy: str, known: Any) -> Any:
        try:
            return original(content, policy, known)
        except CheckpointError as error:
            if policy != configured or "differs from state checkpoint policy" not in str(error):
                raise
            original(content, found, known)
            return MemoryState()

    restored(changes, restore)


@seeds("MEM-CHECKPOINT-009")
def static_memory_policy_takes_the_checkpoint_of_none(changes: Changes) -> None:
    """A plausible author sees that there is nothing to lose in the state of policy None."""
    _foreign(changes, "Static", "None")


# A machine that changed


def _machine(
    changes: Changes,
    change: Callable[[StaticMemoryPolicy, dict[int, NodeMemory]], dict[int, NodeMemory]],
) -> None:
    """Lets the static policy start with other nodes than the file has."""

    def restore(original: Any, self: StaticMemoryPolicy, state: MemoryState) -> Any:
        if state.nodes:
            nodes = change(self, dict(state.nodes))
            if nodes != state.nodes:
                state = dataclasses.replace(state, nodes=dict(sorted(nodes.items())))
        return original(self, state)

    changes.around(StaticMemoryPolicy, "restore", restore)


@seeds("MEM-CHECKPOINT-002")
def memory_of_new_nodes_is_not_compared(changes: Changes) -> None:
    """A plausible author goes through the nodes of the file."""
    _machine(changes, lambda policy, nodes: {**policy.empty, **nodes})
