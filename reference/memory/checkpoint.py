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
    from collections.abc import Iterable, Mapping

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
            gojson.Fields("state.MemoryTable", dict.fromkeys(_TABLE_FIELDS, gojson.Unsigned())),
            "map[v1.ResourceName]*state.MemoryTable",
        ),
        "cells": _INTEGERS,
    },
)
_BLOCK = gojson.Fields(
    "state.Block",
    {"numaAffinity": _INTEGERS, "type": gojson.Text("v1.ResourceName"), "size": gojson.Unsigned()},
)
_FIELDS: Mapping[str, gojson.Kind] = {
    "policyName": gojson.Text(),
    "machineState": gojson.Keyed(_NODE, "state.NUMANodeMap", numbered=True),
    "entries": gojson.Keyed(
        gojson.Keyed(gojson.Listed(_BLOCK, "[]state.Block"), "map[string][]state.Block"),
        "state.ContainerMemoryAssignments",
    ),
    "checksum": gojson.Unsigned("checksum.Checksum"),
}
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
    if not trusted and found["checksum"] != _checksum(found):
        raise checkpoint.CorruptCheckpointError
    if found["policyName"] != policy:
        raise checkpoint.CheckpointError(
            f'[memorymanager] configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )
    return MemoryState() if policy == "None" else _state(found)


def dump(state: MemoryState, policy: str) -> bytes:
    """The file that holds the state, byte for byte as the kubelet writes it."""
    written = _document(state, policy)
    nodes = sorted((str(node), memory) for node, memory in written["machineState"].items())
    text = [
        f'"policyName":{checkpoint.quoted(policy)}',
        '"machineState":' + _object((node, _node(memory)) for node, memory in nodes),
    ]
    if written["entries"]:
        text.append(
            '"entries":'
            + _object(
                (uid, _object((name, _blocks(own)) for name, own in sorted(containers.items())))
                for uid, containers in sorted(written["entries"].items())
            )
        )
    text.append(f'"checksum":{_checksum(written)}')
    return ("{" + ",".join(text) + "}").encode()


def _state(found: Mapping[str, Any]) -> MemoryState:
    nodes = {
        node: NodeMemory(
            memory["numberOfAssignments"],
            {kind: Table(*table.values()) for kind, table in memory["memoryMap"].items()},
            _mask(memory["cells"]),
        )
        for node, memory in sorted(found["machineState"].items())
    }
    entries = {
        uid: {
            name: tuple(
                Block(_mask(block["numaAffinity"]), block["type"], block["size"])
                for block in blocks
            )
            for name, blocks in containers.items()
        }
        for uid, containers in found["entries"].items()
    }
    return MemoryState(nodes, entries)


def _mask(nodes: Iterable[int]) -> int:
    mask = 0
    for node in nodes:
        mask |= 1 << (node if 0 <= node < _NOWHERE else _NOWHERE)
    return mask


def _document(state: MemoryState, policy: str) -> dict[str, Any]:
    """The state as the fields of the file."""
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
                    for kind, table in memory.tables.items()
                },
                "cells": [*NUMASet.from_mask(memory.cells)],
            }
            for node, memory in state.nodes.items()
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
                for name, blocks in containers.items()
            }
            for uid, containers in state.entries.items()
        },
    }


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{checkpoint.quoted(key)}:{value}" for key, value in pairs) + "}"


def _node(memory: Mapping[str, Any]) -> str:
    tables = _object(
        (kind, _object((field, str(table[field])) for field in _TABLE_FIELDS))
        for kind, table in sorted(memory["memoryMap"].items())
    )
    return (
        f'{{"numberOfAssignments":{memory["numberOfAssignments"]},"memoryMap":{tables},'
        f'"cells":{_list(memory["cells"], ",")}}}'
    )


def _blocks(blocks: Iterable[Mapping[str, Any]]) -> str:
    texts = (
        f'{{"numaAffinity":{_list(block["numaAffinity"], ",")},'
        f'"type":{checkpoint.quoted(block["type"])},"size":{block["size"]}}}'
        for block in blocks
    )
    return f"[{','.join(texts)}]"


def _checksum(found: Mapping[str, Any]) -> int:
    nodes = " ".join(
        f"{node}:<*>{{NumberOfAssignments:(int){memory['numberOfAssignments']} "
        "MemoryMap:(map[v1.ResourceName]*state.MemoryTable)"
        f"map[{_tables(memory)}] Cells:([]int){_list(memory['cells'], ' ')}}}"
        for node, memory in sorted(found["machineState"].items())
    )
    entries = " ".join(
        f"{uid}:map["
        + " ".join(f"{name}:[{_dumped(own)}]" for name, own in sorted(containers.items()))
        + "]"
        for uid, containers in sorted(found["entries"].items())
    )
    return checkpoint.checksum(
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){found['policyName']} "
        f"MachineState:(state.NUMANodeMap)map[{nodes}] "
        f"Entries:(state.ContainerMemoryAssignments)map[{entries}] "
        "Checksum:(checksum.Checksum)0}"
    )


def _tables(memory: Mapping[str, Any]) -> str:
    return " ".join(
        f"{kind}:<*>{{"
        + " ".join(
            f"{name}:(uint64){table[field]}"
            for name, field in zip(_TABLE_DUMP, _TABLE_FIELDS, strict=True)
        )
        + "}"
        for kind, table in sorted(memory["memoryMap"].items())
    )


def _dumped(blocks: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(
        f"{{NUMAAffinity:([]int){_list(block['numaAffinity'], ' ')} "
        f"Type:(v1.ResourceName){block['type']} Size:(uint64){block['size']}}}"
        for block in blocks
    )


def _list(nodes: Iterable[int], between: str) -> str:
    return f"[{between.join(map(str, nodes))}]"
