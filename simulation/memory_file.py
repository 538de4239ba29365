"""Everything that is wrong with a ``memory_manager_state``.

However a file differs from the machine, a kubelet just says "the expected machine state is
different from the real one"; this module lists each difference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard

from numaproof.inputs.plurals import numbered
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from numaproof.reference.memory.state import MemoryTable, NodeMemory

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_FIELDS = ("total", "systemReserved", "allocatable")


def assumed_config(found: Mapping[str, Any], nodes: Container[int]) -> dict[str, Any] | None:
    """A configuration that fits the content of the file; None if the file does not say enough.

    Nothing is reserved on nodes that the machine does not have; its nodes are `nodes`.
    """
    if found.get("policyName") == "None":
        return {}
    reserved = {
        node: table["memory"].get("systemReserved")
        for node, table in _tables(found).items()
        if "memory" in table and node in nodes
    }
    entries = [
        {"numaNode": node, "limits": {"memory": str(size)}}
        for node, size in reserved.items()
        if _is_amount(size) and size
    ]
    if found.get("policyName") != "Static" or not entries:
        return None
    total = sum(size for size in reserved.values() if _is_amount(size))
    return {
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": str(total)},
        "evictionHard": {},
        "reservedMemory": entries,
    }


def findings(found: Mapping[str, Any], machine: Mapping[int, NodeMemory]) -> Iterator[str]:
    """The differences between the content of a file and an idle `machine`, node by node.

    Anything that a kubelet would not read is ignored.
    """
    in_file = _tables(found)
    for node in sorted(in_file.keys() - machine.keys()):
        yield f"the file has NUMA node {node}, which the machine does not have"
    for node in sorted(machine.keys() - in_file.keys()):
        yield f"the machine has NUMA node {node}, which the file does not have"
    for node in sorted(in_file.keys() & machine.keys()):
        yield from _node(f"NUMA node {node}", in_file[node], machine[node].tables)
    yield from _blocks(found, machine)
    yield from _groups(found)


def _node(
    place: str, in_file: Mapping[str, Mapping[str, Any]], tables: Mapping[str, MemoryTable]
) -> Iterator[str]:
    for kind in sorted(in_file.keys() - tables.keys()):
        yield f"{place}: the file has {kind}, which the node does not have"
    for kind in sorted(tables.keys() - in_file.keys()):
        yield f"{place}: the node has {kind}, which the file does not have"
    for kind in sorted(in_file.keys() & tables.keys()):
        written, table = in_file[kind], tables[kind]
        real = (table.total, table.system, table.allocatable)
        for field, amount in zip(_FIELDS, real, strict=True):
            if written.get(field) != amount:
                yield (
                    f"{place}: {kind}: {field} is {written.get(field)} in the file but {amount} "
                    f"on the machine{_why(field)}"
                )
        reserved, free, allocatable = (
            _amount(written.get(field)) for field in ("reserved", "free", "allocatable")
        )
        if reserved + free != allocatable:
            yield (
                f"{place}: {kind}: reserved + free is {reserved + free}, expected allocatable, "
                f"{allocatable}"
            )


def _why(field: str) -> str:
    if field == "total":
        return " (a new kernel, a different memory module, or huge pages allocated at run time)"
    if field == "systemReserved":
        return " (the configuration has changed since the file was written)"
    return ""


def _blocks(found: Mapping[str, Any], machine: Mapping[int, NodeMemory]) -> Iterator[str]:
    """Blocks on missing nodes, and memory that no block accounts for."""
    held: dict[tuple[NUMASet, str], int] = {}
    lying: dict[int, int] = {}
    for place, block in _all_blocks(found):
        try:
            nodes = NUMASet(block["numaAffinity"])
        except ValueError:
            nodes = NUMASet()
        absent = [node for node in block["numaAffinity"] if node not in machine]
        if absent:
            yield f"{place} has a block on NUMA node {absent[0]}, which the machine does not have"
        for node in nodes:
            lying[node] = lying.get(node, 0) + 1
        key = (nodes, block["type"])
        held[key] = held.get(key, 0) + block["size"]
    tables = _tables(found)
    for (nodes, kind), size in held.items():
        reserved = sum(
            _amount(tables.get(node, {}).get(kind, {}).get("reserved")) for node in nodes
        )
        if size != reserved and all(node in tables for node in nodes):
            yield (
                f"{numbered('NUMA node', nodes)}: {kind}: containers hold {size}, but {reserved} is"
                " reserved"
            )
    for node, content in sorted(_nodes(found).items()):
        count = content.get("numberOfAssignments")
        if count != lying.get(node, 0):
            yield (
                f"NUMA node {node}: numberOfAssignments is {count}, expected {lying.get(node, 0)}, "
                "the number of its blocks"
            )


def _groups(found: Mapping[str, Any]) -> Iterator[str]:
    """Overlapping groups of nodes: by the kubelet's own rule they are disjoint or equal."""
    groups = {
        node: tuple(content["cells"])
        for node, content in sorted(_nodes(found).items())
        if isinstance(content.get("cells"), list)
    }
    for node, cells in groups.items():
        for member in cells:
            other = groups.get(member) if isinstance(member, int) else None
            if other is not None and other != cells:
                yield (
                    f"NUMA node {node} is in the group {list(cells)}, but node {member} of that "
                    f"group is in {list(other)}: groups of nodes must be equal or disjoint"
                )
                break


def _nodes(found: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    nodes = found.get("machineState")
    if not isinstance(nodes, dict):
        return {}
    return {
        int(node): content
        for node, content in nodes.items()
        if _NUMBER.fullmatch(node) and isinstance(content, dict)
    }


def _tables(found: Mapping[str, Any]) -> dict[int, dict[str, Mapping[str, Any]]]:
    """The memory tables by node and memory type."""
    return {
        node: {
            kind: table for kind, table in content["memoryMap"].items() if isinstance(table, dict)
        }
        if isinstance(content.get("memoryMap"), dict)
        else {}
        for node, content in _nodes(found).items()
    }


def _all_blocks(found: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = found.get("entries")
    for uid, containers in entries.items() if isinstance(entries, dict) else ():
        for name, blocks in containers.items() if isinstance(containers, dict) else ():
            for block in blocks if isinstance(blocks, list) else ():
                if (
                    isinstance(block, dict)
                    and isinstance(block.get("numaAffinity"), list)
                    and all(isinstance(node, int) for node in block["numaAffinity"])
                    and isinstance(block.get("type"), str)
                    and _is_amount(block.get("size"))
                ):
                    yield f"pod {uid}, container {name}", block


def _amount(value: Any) -> int:
    """The value if it is an amount, otherwise 0."""
    return value if _is_amount(value) else 0


def _is_amount(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
