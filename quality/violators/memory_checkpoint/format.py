"""Violators of the requirements of the memory checkpoint: whether a start takes the file."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.errors import StartError
from numaproof.reference.kubelet.checkpoints import files, formats, memory
from numaproof.reference.kubelet.checkpoints.files import CheckpointError
from numaproof.reference.kubelet.checkpoints.formats import Format, UnreadableError
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, MemoryTable, NodeMemory
from quality import checkpoint_changes
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable


seeds = SubjectBugs("memory-checkpoint")

SPACE = b" \t\r\n"
KNOWN = frozenset(
    {"policyname", "machinestate", "entries", "podentries", "checksum", "data", "datachecksum"}
)


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


@seeds("MEM-CHECKPOINT-001", kubernetes="1.35")
def wrong_memory_checksum_begins_afresh(changes: Changes) -> None:
    """A plausible author throws a damaged checkpoint away, and counts the memory anew."""

    def restore(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except CheckpointError as error:
            if str(error) != formats.CORRUPTED:
                raise
            return MemoryState()

    restored(changes, restore)


@seeds("MEM-CHECKPOINT-005")
def memory_checksum_takes_null_for_empty(changes: Changes) -> None:
    """A plausible author makes null an empty map before he verifies the checksum."""

    def takes(original: Any, self: Format, found: Any) -> Any:
        if self.structure.startswith("state.Memory"):
            found = {name: {} if value is None else value for name, value in found.items()}
        return original(self, found)

    changes.around(Format, "takes", takes)


@seeds("MEM-CHECKPOINT-005")
def null_machine_state_is_refused(changes: Changes) -> None:
    """A plausible author wants an object for the machine state."""
    _null(changes, "machineState", "NUMANodeMap")


@seeds("MEM-CHECKPOINT-005")
def null_memory_entries_are_refused(changes: Changes) -> None:
    """A plausible author wants an object for the entries, where there are any."""
    _null(changes, "entries", "ContainerMemoryAssignments")


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


def _wants_checksum(changes: Changes, lacks: Callable[[dict[str, Any]], bool]) -> None:
    def read(original: Any, self: Format, content: bytes) -> Any:
        found = original(self, content)
        if lacks(parsed(content)):
            raise UnreadableError(formats.CORRUPTED, found)
        return found

    format_read(changes, read)


@seeds("MEM-CHECKPOINT-006", kubernetes="1.36")
def memory_checksum_is_needed_one_release_longer(changes: Changes) -> None:
    """A plausible author finds the change in the release after."""
    _wants_checksum(changes, lambda document: not document.get("checksum"))


@seeds("MEM-CHECKPOINT-006")
def memory_checksum_must_be_there_if_zero(changes: Changes) -> None:
    """A plausible author takes a checksum of zero, not a file without the field."""
    _wants_checksum(changes, lambda document: "checksum" not in document)


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
def memory_checkpoint_without_data_is_refused(changes: Changes) -> None:
    """A plausible author reads the format that he writes."""
    with_formats(changes, lambda known: dataclasses.replace(known, attempts=known.attempts[:1]))


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
def unknown_field_of_memory_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author decodes strictly."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        for name in parsed(content):
            if name.lower() not in KNOWN:
                raise CheckpointError(f'json: unknown field "{name}"')
        return original(content, *rest)

    restored(changes, restore)


@seeds("MEM-CHECKPOINT-004")
def white_space_around_memory_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author wants the file to be the JSON and nothing else."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        if content.strip(SPACE) not in (b"", content):
            raise CheckpointError(r"invalid character '\n' around top-level value")
        return original(content, *rest)

    restored(changes, restore)


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


@seeds("MEM-CHECKPOINT-008")
def empty_memory_checkpoint_counts_as_missing(changes: Changes) -> None:
    """A plausible author treats an empty file as none."""
    restored(
        changes,
        lambda original, content, *rest: (
            original(content, *rest) if content.strip(SPACE) else MemoryState()
        ),
    )


@seeds("MEM-CHECKPOINT-008")
def memory_checkpoint_that_is_no_json_begins_afresh(changes: Changes) -> None:
    """A plausible author throws away what he cannot parse."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        try:
            json.loads(content)
        except ValueError:
            if content.strip(SPACE):
                return MemoryState()
        return original(content, *rest)

    restored(changes, restore)


@seeds("MEM-CHECKPOINT-008")
def json_that_is_no_object_counts_as_empty(changes: Changes) -> None:
    """A plausible author looks for fields in whatever the JSON is, and finds none."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        try:
            plain = not isinstance(json.loads(content), dict)
        except ValueError:
            plain = False
        return MemoryState() if plain else original(content, *rest)

    restored(changes, restore)


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


@seeds("MEM-CHECKPOINT-009")
def memory_policy_none_takes_the_checkpoint_of_static(changes: Changes) -> None:
    """A plausible author sees that policy None has no use for the state."""
    _foreign(changes, "None", "Static")


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
def memory_may_have_grown(changes: Changes) -> None:
    """A plausible author refuses only a machine with less memory."""

    def grown(table: MemoryTable, real: MemoryTable) -> MemoryTable:
        more = real.allocatable - table.allocatable
        if real.total <= table.total or real.system != table.system or more < 0:
            return table
        return real._replace(reserved=table.reserved, free=table.free + more)

    def change(policy: StaticMemoryPolicy, nodes: dict[int, NodeMemory]) -> dict[int, NodeMemory]:
        for node, own in nodes.items():
            real = policy.empty.get(node)
            if real is not None and real.tables.keys() == own.tables.keys():
                tables = {
                    kind: grown(table, real.tables[kind]) for kind, table in own.tables.items()
                }
                nodes[node] = dataclasses.replace(own, tables=tables)
        return nodes

    _machine(changes, change)


@seeds("MEM-CHECKPOINT-002")
def memory_of_new_nodes_is_not_compared(changes: Changes) -> None:
    """A plausible author goes through the nodes of the file."""
    _machine(changes, lambda policy, nodes: {**policy.empty, **nodes})


@seeds("MEM-CHECKPOINT-002")
def memory_of_idle_nodes_is_not_compared(changes: Changes) -> None:
    """A plausible author compares the nodes that somebody uses."""

    def change(policy: StaticMemoryPolicy, nodes: dict[int, NodeMemory]) -> dict[int, NodeMemory]:
        return {
            node: own if own.assignments else policy.empty.get(node, own)
            for node, own in nodes.items()
        }

    _machine(changes, change)
