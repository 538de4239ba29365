"""The Memory Manager's checkpoint file ``memory_manager_state``, read and written.

Go's JSON orders the keys of maps as text, so node 10 comes before node 2; the textual dump that
the checksum is made of orders nodes by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.kubernetes import checkpoint, gojson
from numaproof.reference.kubernetes.gosyntax import GoJSONError
from numaproof.reference.memory.state import Block, MemoryState, NodeMemory, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numaproof.reference.kubernetes.releases import Release

FILE_NAME = "memory_manager_state"

_TABLE_FIELDS = ("total", "systemReserved", "allocatable", "reserved", "free")
_TABLE_DUMP = ("TotalMemSize", "SystemReserved", "Allocatable", "Reserved", "Free")
_INTEGERS = gojson.Listed(gojson.Signed(), "[]int")
_NODE = gojson.Fields(
    "state.NUMANodeState",
    {
        "numberOfAssignments": gojson.Signed(),
        "memoryMap": gojson.Keyed(
            gojson.Fields(
                "state.MemoryTable", dict.fromkeys(_TABLE_FIELDS, gojson.Unsigned()), pointer=True
            ),
            "map[v1.ResourceName]*state.MemoryTable",
        ),
        "cells": _INTEGERS,
    },
    pointer=True,
)
_BLOCK = gojson.Fields(
    "state.Block",
    {"numaAffinity": _INTEGERS, "type": gojson.Text("v1.ResourceName"), "size": gojson.Unsigned()},
)
_FIELDS: Mapping[str, gojson.Kind] = {
    "policyName": gojson.Text(),
    "machineState": gojson.Keyed(_NODE, "state.NUMANodeMap", numbered=True, made=True),
    "entries": gojson.Keyed(
        gojson.Keyed(gojson.Listed(_BLOCK, "[]state.Block"), "map[string][]state.Block"),
        "state.ContainerMemoryAssignments",
        made=True,
    ),
    "checksum": gojson.Unsigned("checksum.Checksum"),
}
_WRITTEN_TYPE = "state.MemoryManagerCheckpoint"
_NIL = "<nil>"
_EMPTY_NODE: Mapping[str, Any] = {"numberOfAssignments": 0, "memoryMap": {}, "cells": []}
_EMPTY_TABLE = dict.fromkeys(_TABLE_FIELDS, 0)
"""A node and a table that are ``null`` are unlike all that a machine has."""

_NOWHERE = 1 << 12
"""The id that stands for all node ids that no machine has."""


def restore(content: bytes, policy: str, release: Release) -> MemoryState:
    """The state that the file of an earlier start holds; the policy None takes nothing from it.

    Raises:
        checkpoint.CheckpointError: the file is damaged, or another policy's.
    """
    try:
        found: dict[str, Any] = gojson.decode(
            content, gojson.Fields(release.memory_checkpoint_type, _FIELDS)
        )
    except GoJSONError as error:
        raise checkpoint.CheckpointError(str(error)) from None
    trusted = release.memory_takes_no_checksum and not found["checksum"]
    if not trusted and found["checksum"] not in _checksums(found, release):
        raise checkpoint.CorruptCheckpointError
    if found["policyName"] != policy:
        raise checkpoint.CheckpointError(
            f'[memorymanager] configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )
    return MemoryState() if policy == "None" else _state(found)


def dump(state: MemoryState, policy: str) -> bytes:
    """The file that holds the state, byte for byte as the kubelet writes it."""
    document = _document(state, policy)
    checksum = _checksum(document)
    if not document["entries"]:
        del document["entries"]
    return checkpoint.encode({**document, "checksum": checksum})


def _state(found: Mapping[str, Any]) -> MemoryState:
    nodes = {
        node: _node_memory(memory or _EMPTY_NODE)
        for node, memory in sorted((found["machineState"] or {}).items())
    }
    entries = {
        uid: {
            name: tuple(
                Block(_mask(block["numaAffinity"]), block["type"], block["size"])
                for block in blocks or ()
            )
            for name, blocks in (containers or {}).items()
        }
        for uid, containers in (found["entries"] or {}).items()
    }
    return MemoryState(nodes, entries)


def _node_memory(memory: Mapping[str, Any]) -> NodeMemory:
    cells: list[int] = memory["cells"] or []
    repeated = len(cells) != len(set(cells))
    return NodeMemory(
        memory["numberOfAssignments"],
        {
            kind: Table(*(table or _EMPTY_TABLE).values())
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
    """The state as the fields of the file, maps in the order of their keys' text."""
    return {
        "policyName": policy,
        "machineState": {
            node: {
                "numberOfAssignments": memory.assignments,
                "memoryMap": {
                    kind: {
                        "total": table.total,
                        "systemReserved": table.system,
                        "allocatable": table.allocatable,
                        "reserved": table.reserved,
                        "free": table.free,
                    }
                    for kind, table in sorted(memory.tables.items())
                },
                "cells": [*NUMASet.from_mask(memory.cells)],
            }
            for node, memory in sorted(state.nodes.items(), key=lambda item: str(item[0]))
        },
        "entries": {
            uid: {
                name: [
                    {
                        "numaAffinity": [*NUMASet.from_mask(own.nodes)],
                        "type": own.kind,
                        "size": own.size,
                    }
                    for own in blocks
                ]
                for name, blocks in sorted(containers.items())
            }
            for uid, containers in sorted(state.entries.items())
        },
    }


def _checksums(found: Mapping[str, Any], release: Release) -> set[int]:
    """The checksums that a file may have: that of its structure, and of the one kubelets write."""
    return {_checksum(found, name) for name in (release.memory_checkpoint_type, _WRITTEN_TYPE)}


def _checksum(found: Mapping[str, Any], structure: str = _WRITTEN_TYPE) -> int:
    return checkpoint.checksum(
        f"(*{structure}){{PolicyName:(string){found['policyName']} "
        f"MachineState:(state.NUMANodeMap){_map(found['machineState'], _dumped_node)} "
        f"Entries:{_type('state.ContainerMemoryAssignments', found['machineState'])}"
        f"{_map(found['entries'], _dumped_pod)} "
        "Checksum:(checksum.Checksum)0}"
    )


def _map(values: Mapping[Any, Any] | None, dumped: Callable[[Any], str]) -> str:
    if values is None:
        return _NIL
    return f"map[{' '.join(f'{key}:{dumped(value)}' for key, value in sorted(values.items()))}]"


def _type(name: str, before: Mapping[Any, Any] | None) -> str:
    """The type in front of a value; the dump forgets it after a map that ends with no pointer."""
    return "" if before and before[max(before)] is None else f"({name})"


def _dumped_node(memory: Mapping[str, Any] | None) -> str:
    if memory is None:
        return _NIL
    return (
        f"<*>{{NumberOfAssignments:(int){memory['numberOfAssignments']} "
        "MemoryMap:(map[v1.ResourceName]*state.MemoryTable)"
        f"{_map(memory['memoryMap'], _dumped_table)} "
        f"Cells:{_type('[]int', memory['memoryMap'])}{_dumped_list(memory['cells'])}}}"
    )


def _dumped_table(table: Mapping[str, int] | None) -> str:
    if table is None:
        return _NIL
    amounts = (
        f"{name}:(uint64){table[field]}"
        for name, field in zip(_TABLE_DUMP, _TABLE_FIELDS, strict=True)
    )
    return f"<*>{{{' '.join(amounts)}}}"


def _dumped_pod(containers: Mapping[str, Any] | None) -> str:
    return _map(containers, _dumped_blocks)


def _dumped_blocks(blocks: Iterable[Mapping[str, Any]] | None) -> str:
    if blocks is None:
        return _NIL
    texts = (
        f"{{NUMAAffinity:([]int){_dumped_list(block['numaAffinity'])} "
        f"Type:(v1.ResourceName){block['type']} Size:(uint64){block['size']}}}"
        for block in blocks
    )
    return f"[{' '.join(texts)}]"


def _dumped_list(nodes: Iterable[int] | None) -> str:
    return _NIL if nodes is None else f"[{' '.join(map(str, nodes))}]"
