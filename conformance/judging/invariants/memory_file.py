"""The Memory Manager's checkpoint file: its tables add up, and say what containers have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.judging.entitlement import gives_budgets
from numaproof.conformance.judging.invariants import files
from numaproof.conformance.judging.invariants.view import Violation
from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.judging.invariants.view import View

FILE_NAME = "memory_manager_state"

_REQUIREMENT = "NODE-STATE-002"


class WrittenTable(msgspec.Struct, frozen=True, rename="camel"):
    """One memory type on one node, in bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


class WrittenNode(msgspec.Struct, frozen=True, rename="camel"):
    """One node: how many blocks lie on it, its tables, and the group that it is used with."""

    number_of_assignments: int
    memory_map: dict[str, WrittenTable]
    cells: tuple[int, ...]


class WrittenBlock(msgspec.Struct, frozen=True, rename="camel"):
    """Memory of one type on a group of nodes."""

    numa_affinity: tuple[int, ...]
    type: str
    size: int


class Content(files.File, frozen=True, rename="camel"):
    """What the file holds, as far as it is looked at; null stands for nothing."""

    machine_state: dict[int, WrittenNode] | None = None
    entries: dict[str, dict[str, tuple[WrittenBlock, ...]]] | None = None


def on_state(view: View) -> Iterator[Violation]:
    """What must hold of the file, where there is one."""
    try:
        content = _content(view)
    except ValueError as error:
        yield Violation("memory-file-readable", _REQUIREMENT, f"{FILE_NAME}: {error}")
        return
    if content is None:
        return
    yield from _entries(view, content)
    for node, memory in sorted((content.machine_state or {}).items()):
        yield from _sums(node, memory)
    yield from _in_use(view, content)
    yield from _reserved(view, content)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """A refused pod takes no node out of the group that it is used with."""
    try:
        sides = _content(before), _content(after)
    except ValueError:
        return
    was, now = ((side.machine_state or {}) if side else {} for side in sides)
    for node in sorted(was.keys() & now.keys()):
        if len(was[node].cells) > 1 and now[node].cells == (node,):
            yield Violation(
                "refusal-keeps-groups",
                "NODE-REFUSED-001",
                f"after a refusal node {node} is alone in {FILE_NAME}, before it in the group"
                f" {_numbers(was[node].cells)}",
            )


def _content(view: View) -> Content | None:
    """What the file says, None where there is none.

    Raises:
        ValueError: it cannot be read.
        msgspec.DecodeError: likewise.
    """
    text = view.state.files.get(FILE_NAME)
    return None if text is None else files.read(text, Content)


def _entries(view: View, content: Content) -> Iterator[Violation]:
    said = {
        f"{uid}/{name}": sorted(_plain(block) for block in blocks)
        for uid, containers in (content.entries or {}).items()
        for name, blocks in containers.items()
        if blocks
    }
    held = {
        f"{uid}/{name}": sorted(
            (str(block.numa), block.type, block.size) for block in container.memory
        )
        for uid, containers in view.state.pods.items()
        for name, container in containers.items()
        if container.memory
    }
    for place in sorted({*said, *held}):
        if said.get(place) != held.get(place):
            yield Violation(
                "memory-file-says-what-is-held",
                _REQUIREMENT,
                f"{place} has {_blocks(held.get(place))}; {FILE_NAME} says"
                f" {_blocks(said.get(place))}",
            )


def _numbers(nodes: Iterable[int]) -> str:
    """Node ids that a file has, which need be neither sorted nor possible."""
    return ",".join(map(str, sorted(nodes)))


def _blocks(blocks: Iterable[tuple[str, str, int]] | None) -> str:
    listed = (f"{size} of {kind} on {nodes}" for nodes, kind, size in blocks or ())
    return " and ".join(listed) or "no memory"


def _plain(block: WrittenBlock) -> tuple[str, str, int]:
    return str(NUMASet(block.numa_affinity)), block.type, block.size


def _sums(node: int, memory: WrittenNode) -> Iterator[Violation]:
    pages = sum(
        table.total for kind, table in memory.memory_map.items() if kind.startswith("hugepages-")
    )
    for kind, table in sorted(memory.memory_map.items()):
        beside = pages if kind == "memory" else 0
        if (
            table.free + table.reserved != table.allocatable
            # A node on which more is reserved than it has has nothing to give.
            or table.allocatable != max(0, table.total - table.system_reserved - beside)
            or min(msgspec.structs.astuple(table)) < 0
        ):
            yield Violation(
                "memory-file-adds-up",
                _REQUIREMENT,
                f"node {node}, {kind}: {table.free} free, {table.reserved} reserved,"
                f" {table.allocatable} allocatable, {table.system_reserved} kept for the system,"
                f" {table.total} in total",
                size=max(msgspec.structs.astuple(table)),
            )


def _in_use(view: View, content: Content) -> Iterator[Violation]:
    """What nodes say of the blocks on them, against the blocks.

    What is wrong since pods with resources as a whole may have come again has a name of its own:
    one that was refused then is gone, and still counted.
    """
    again = view.starts > 1 and gives_budgets(view.config, view.kubernetes)
    blocks = _all_blocks(content)
    on = Counter(node for block in blocks for node in block.numa_affinity)
    groups = {node: block.numa_affinity for block in blocks for node in block.numa_affinity}
    for node, memory in sorted((content.machine_state or {}).items()):
        group = groups.get(node, (node,))
        if memory.number_of_assignments != on[node] or sorted(memory.cells) != sorted(group):
            yield Violation(
                f"memory-file-counts-blocks{'-of-budgets' if again else ''}",
                _REQUIREMENT,
                f"node {node} has {plural(on[node], 'block')} with the nodes {_numbers(group)},"
                f" and says {memory.number_of_assignments} with {_numbers(memory.cells)}",
            )


def _all_blocks(content: Content) -> list[WrittenBlock]:
    return [
        block
        for containers in (content.entries or {}).values()
        for held in containers.values()
        for block in held
    ]


def _reserved(view: View, content: Content) -> Iterator[Violation]:
    """What nodes say is reserved on them, against the blocks.

    What is wrong since a pod came again has a name of its own, also when that pod is gone: it gave
    back what was never reserved for it.
    """
    blocks = _all_blocks(content)
    name = f"memory-file-reserves-{'for-returned-pods' if view.returned else 'what-is-held'}"
    for group in sorted({frozenset(block.numa_affinity) for block in blocks}, key=sorted):
        for message in _unreserved(content.machine_state or {}, group, blocks):
            yield Violation(name, _REQUIREMENT, message)


def _unreserved(
    nodes: Mapping[int, WrittenNode], group: frozenset[int], blocks: list[WrittenBlock]
) -> Iterator[str]:
    kinds = {kind for node in group if node in nodes for kind in nodes[node].memory_map}
    for kind in sorted(kinds):
        held = sum(
            block.size
            for block in blocks
            if block.type == kind and frozenset(block.numa_affinity) == group
        )
        said = sum(_of(nodes, node, kind) for node in group)
        if held != said:
            yield (
                f"nodes {_numbers(group)}: {plural(held, 'byte')} of {kind} held,"
                f" {said:,} in the file"
            )


def _of(nodes: Mapping[int, Any], node: int, kind: str) -> int:
    table = nodes[node].memory_map.get(kind) if node in nodes else None
    return table.reserved if table else 0
