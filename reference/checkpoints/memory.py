"""Reads and writes the Memory Manager's checkpoint file, ``memory_manager_state``.

Go's JSON sorts the keys of maps as strings, so node 10 comes before node 2. The textual dump for
the checksum sorts nodes by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints.formats import Format, Formats, TwoPartFormat
from numaproof.reference.golang import decoding
from numaproof.reference.memory.state import Block, MemoryState, MemoryTable, NodeMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.reference.memory.state import Blocks

FILE_NAME = "memory_manager_state"

_TABLE_FIELDS = ("total", "systemReserved", "allocatable", "reserved", "free")
_INTEGERS = decoding.Array(decoding.Signed(), "[]int")
_NODE = decoding.Fields(
    "state.NUMANodeState",
    {
        "numberOfAssignments": decoding.Signed(),
        "memoryMap": decoding.Map(
            decoding.Fields(
                "state.MemoryTable", dict.fromkeys(_TABLE_FIELDS, decoding.Unsigned()), pointer=True
            ),
            "map[v1.ResourceName]*state.MemoryTable",
        ),
        "cells": _INTEGERS,
    },
    pointer=True,
)
_BLOCK = decoding.Fields(
    "state.Block",
    {
        "numaAffinity": _INTEGERS,
        "type": decoding.Text("v1.ResourceName"),
        "size": decoding.Unsigned(),
    },
)
_FIELDS: Mapping[str, decoding.Kind] = {
    "policyName": decoding.Text(),
    "machineState": decoding.Map(_NODE, "state.NUMANodeMap", integer_keys=True, starts_empty=True),
    "entries": decoding.Map(
        decoding.Map(decoding.Array(_BLOCK, "[]state.Block"), "map[string][]state.Block"),
        "state.ContainerMemoryAssignments",
        starts_empty=True,
    ),
}
_POD_ENTRIES = decoding.Map(
    decoding.Fields("state.PodEntry", {"memoryBlocks": decoding.Array(_BLOCK, "[]state.Block")}),
    "state.PodMemoryAssignments",
    starts_empty=True,
)
_WRITTEN_TYPE = "state.MemoryManagerCheckpoint"
"""The structure for the checksum in written files, which all releases accept."""
_EMPTY_NODE: Mapping[str, Any] = {"numberOfAssignments": 0, "memoryMap": {}, "cells": []}
_EMPTY_TABLE = dict.fromkeys(_TABLE_FIELDS, 0)
"""The values of ``null`` as a node or a table, which match no real machine."""

_NOWHERE = 1 << 12
"""Replaces node ids that are out of range."""


def version_1(structure: str, *more: str, takes_no_checksum: bool) -> Format:
    """Returns the format that stores each container's memory.

    `structure` is the type that the file is read into; the checksums of `more` types are also
    accepted.
    """
    return Format(structure, _FIELDS, (_WRITTEN_TYPE, *more), takes_no_checksum)


def version_2(structure: str) -> Format:
    """Returns the format that adds the memory of whole pods."""
    return Format(
        structure,
        {**_FIELDS, "podEntries": _POD_ENTRIES},
        (_WRITTEN_TYPE,),
        takes_no_checksum=False,
    )


def version_3() -> TwoPartFormat:
    """Returns the format with a part for earlier releases and a part that contains everything."""
    return TwoPartFormat(
        _WRITTEN_TYPE,
        "v3",
        "memory manager",
        version_1(f"{_WRITTEN_TYPE}V1", takes_no_checksum=True),
        f"{_WRITTEN_TYPE}Data",
        {**_FIELDS, "podEntries": _POD_ENTRIES},
    )


def restore(content: bytes, policy: str, formats: Formats) -> MemoryState:
    """Restores the state from a checkpoint file for the configured policy.

    Raises:
        CheckpointError: the file is damaged or was written under another policy.

    Requirements: MEM-CHECKPOINT-001, MEM-CHECKPOINT-004, MEM-CHECKPOINT-005, MEM-CHECKPOINT-006,
    MEM-CHECKPOINT-007, MEM-CHECKPOINT-008, MEM-CHECKPOINT-009.
    """
    _, found = formats.read(content)
    if found["policyName"] != policy:
        raise files.CheckpointError(
            f'[memorymanager] configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )
    return _state(found)


def dump(state: MemoryState, policy: str, formats: Formats) -> bytes:
    """Encodes the state, byte for byte as the kubelet writes it.

    Requirements: MEM-CHECKPOINT-003, NODE-PODLEVEL-015.
    """
    return formats.write_format.write(_document(state, policy))


def _state(content: Mapping[str, Any]) -> MemoryState:
    nodes = {
        node: _node_memory(memory or _EMPTY_NODE)
        for node, memory in sorted((content["machineState"] or {}).items())
    }
    entries = {
        uid: {name: _blocks(blocks) for name, blocks in (containers or {}).items()}
        for uid, containers in (content["entries"] or {}).items()
    }
    pods = {
        uid: None if (blocks := entry["memoryBlocks"]) is None else _blocks(blocks)
        for uid, entry in (content["podEntries"] or {}).items()
    }
    return MemoryState(nodes, entries, pods)


def _blocks(blocks: Iterable[Mapping[str, Any]] | None) -> Blocks:
    return tuple(
        Block(_mask(block["numaAffinity"]), block["type"], block["size"]) for block in blocks or ()
    )


def _node_memory(memory: Mapping[str, Any]) -> NodeMemory:
    cells: list[int] = memory["cells"] or []
    repeated = len(cells) != len(set(cells))
    return NodeMemory(
        memory["numberOfAssignments"],
        {
            kind: MemoryTable(*(table or _EMPTY_TABLE).values())
            for kind, table in (memory["memoryMap"] or {}).items()
        },
        _mask([*cells, *([_NOWHERE] if repeated else [])]),
    )


def _mask(nodes: Iterable[int] | None) -> int:
    mask = 0
    for node in nodes or ():
        mask |= 1 << (node if 0 <= node < _NOWHERE else _NOWHERE)
    return mask


def _document(state: MemoryState, policy: str) -> dict[str, Any]:
    """Returns the fields of the file, with maps sorted by their keys as strings."""
    return {
        "policyName": policy,
        "machineState": {
            node: {
                "numberOfAssignments": memory.assignments,
                "memoryMap": {
                    kind: dict(zip(_TABLE_FIELDS, memory.tables[kind], strict=True))
                    for kind in sorted(memory.tables)
                },
                "cells": [*NUMASet.from_mask(memory.cells)],
            }
            for node, memory in sorted(state.nodes.items(), key=lambda item: str(item[0]))
        },
        "entries": {
            uid: {name: _block_entries(blocks) for name, blocks in sorted(containers.items())}
            for uid, containers in sorted(state.entries.items())
        },
        "podEntries": {
            uid: {"memoryBlocks": None if blocks is None else _block_entries(blocks)}
            for uid, blocks in sorted(state.pods.items())
        },
    }


def _block_entries(blocks: Blocks) -> list[dict[str, Any]]:
    return [
        {"numaAffinity": [*NUMASet.from_mask(own.nodes)], "type": own.kind, "size": own.size}
        for own in blocks
    ]
