"""How the kubelet writes what the policy Static keeps into ``memory_manager_state``.

Go's JSON orders the keys of maps as text, so node 10 comes before node 2; the textual dump that
the checksum is made of orders nodes by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.kubernetes import checkpoint
from numaproof.reference.memory.state import members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.reference.memory.state import Block, MemoryState, NodeMemory, Table

_POLICY = "Static"


def dump(state: MemoryState) -> bytes:
    """The file that holds the state, byte for byte as the kubelet writes it."""
    nodes = sorted((str(node), memory) for node, memory in state.nodes.items())
    text = [
        f'"policyName":"{_POLICY}"',
        '"machineState":' + _object((node, _node(memory)) for node, memory in nodes),
    ]
    if state.entries:
        text.append(
            '"entries":'
            + _object(
                (uid, _object((name, _blocks(own)) for name, own in sorted(containers.items())))
                for uid, containers in sorted(state.entries.items())
            )
        )
    text.append(f'"checksum":{checksum(state)}')
    return ("{" + ",".join(text) + "}").encode()


def checksum(state: MemoryState) -> int:
    """The checksum of the file that holds the state."""
    nodes = " ".join(
        f"{node}:<*>{{NumberOfAssignments:(int){memory.assignments} "
        "MemoryMap:(map[v1.ResourceName]*state.MemoryTable)"
        f"map[{_tables(memory)}] Cells:([]int){_list(memory.cells, ' ')}}}"
        for node, memory in sorted(state.nodes.items())
    )
    entries = " ".join(
        f"{uid}:map["
        + " ".join(f"{name}:[{_dumped(own)}]" for name, own in sorted(containers.items()))
        + "]"
        for uid, containers in sorted(state.entries.items())
    )
    return checkpoint.checksum(
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){_POLICY} "
        f"MachineState:(state.NUMANodeMap)map[{nodes}] "
        f"Entries:(state.ContainerMemoryAssignments)map[{entries}] "
        "Checksum:(checksum.Checksum)0}"
    )


def _object(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{checkpoint.quoted(key)}:{value}" for key, value in pairs) + "}"


def _node(memory: NodeMemory) -> str:
    tables = _object((kind, _table(table)) for kind, table in sorted(memory.tables.items()))
    return (
        f'{{"numberOfAssignments":{memory.assignments},"memoryMap":{tables},'
        f'"cells":{_list(memory.cells, ",")}}}'
    )


def _table(table: Table) -> str:
    return (
        f'{{"total":{table.total},"systemReserved":{table.system},'
        f'"allocatable":{table.allocatable},"reserved":{table.reserved},"free":{table.free}}}'
    )


def _blocks(blocks: Iterable[Block]) -> str:
    return (
        "["
        + ",".join(
            f'{{"numaAffinity":{_list(block.nodes, ",")},"type":{checkpoint.quoted(block.kind)},'
            f'"size":{block.size}}}'
            for block in blocks
        )
        + "]"
    )


def _tables(memory: NodeMemory) -> str:
    return " ".join(
        f"{kind}:<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system} "
        f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} "
        f"Free:(uint64){table.free}}}"
        for kind, table in sorted(memory.tables.items())
    )


def _dumped(blocks: Iterable[Block]) -> str:
    return " ".join(
        f"{{NUMAAffinity:([]int){_list(block.nodes, ' ')} Type:(v1.ResourceName){block.kind} "
        f"Size:(uint64){block.size}}}"
        for block in blocks
    )


def _list(nodes: int, between: str) -> str:
    return f"[{between.join(map(str, members(nodes)))}]"
