"""Invariants of memory: the reservation, pinned memory, and the Memory Manager's checkpoint."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.judging.entitlement import (
    Amounts,
    gives_budgets,
    keeps_memory,
    pinned_memory,
    reserved_memory,
)
from numaproof.conformance.judging.invariants.view import (
    File,
    Place,
    View,
    Violation,
    format_place,
    nodes_of,
    read_file,
)
from numaproof.fakesys.fields import format_kilobytes
from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.protocol import messages


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
    """One node: its number of assigned blocks, its memory types and its group."""

    number_of_assignments: int
    memory_map: dict[str, WrittenTable]
    cells: tuple[int, ...]


class WrittenBlock(msgspec.Struct, frozen=True, rename="camel"):
    """Memory of one type on a group of nodes."""

    numa_affinity: tuple[int, ...]
    type: str
    size: int


class Content(File, frozen=True, rename="camel"):
    """The parts of the checkpoint that are checked; null counts as empty."""

    machine_state: dict[int, WrittenNode] | None = None
    entries: dict[str, dict[str, tuple[WrittenBlock, ...]]] | None = None


def _of_file(view: View) -> Iterator[Violation]:
    """Checks the checkpoint, if there is one."""
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
    yield from _reserved_in_file(view, content)


def _of_files(before: View, after: View) -> Iterator[Violation]:
    """A refused pod doesn't remove a node from its group."""
    try:
        sides = _content(before), _content(after)
    except ValueError:
        return
    was, now = ((side.machine_state or {}) if side else {} for side in sides)
    for node in sorted(was.keys() & now.keys()):
        if len(was[node].cells) > 1 and now[node].cells == (node,):
            message = (
                f"a refusal removed node {node} from the group"
                f" {_numbers(was[node].cells)} in {FILE_NAME}"
            )
            yield Violation("refusal-keeps-groups", "NODE-REFUSED-001", message)


def _content(view: View) -> Content | None:
    """The contents of the checkpoint; None if there is no file.

    Raises:
        ValueError: the file can't be read.
        msgspec.DecodeError: the file can't be read.
    """
    text = view.state.files.get(FILE_NAME)
    return None if text is None else read_file(text, Content)


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
            message = (
                f"{place} has {_format_blocks(held.get(place))}; {FILE_NAME} has"
                f" {_format_blocks(said.get(place))}"
            )
            yield Violation("memory-file-says-what-is-held", _REQUIREMENT, message)


def _numbers(nodes: Iterable[int]) -> str:
    """Formats node ids from a file; they may be unsorted or invalid."""
    return ",".join(map(str, sorted(nodes)))


def _format_blocks(blocks: Iterable[tuple[str, str, int]] | None) -> str:
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
            # If more is reserved than the node has, nothing is allocatable.
            or table.allocatable != max(0, table.total - table.system_reserved - beside)
            or min(msgspec.structs.astuple(table)) < 0
        ):
            yield Violation(
                "memory-file-adds-up",
                _REQUIREMENT,
                f"node {node}, {kind}: {table.free} free, {table.reserved} reserved,"
                f" {table.allocatable} allocatable, "
                f"{table.system_reserved} reserved for the system,"
                f" {table.total} in total",
                size=max(msgspec.structs.astuple(table)),
            )


def _in_use(view: View, content: Content) -> Iterator[Violation]:
    """Compares each node's number of blocks and group with the blocks.

    If pods with pod-level resources may have been admitted again, the invariant has a different
    name, because pods refused at that point are gone but still counted.
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
                f"node {node} has {plural(on[node], 'block')} in the group {_numbers(group)},"
                f" but {FILE_NAME} counts {memory.number_of_assignments}"
                f" in {_numbers(memory.cells)}",
            )


def _all_blocks(content: Content) -> list[WrittenBlock]:
    return [
        block
        for containers in (content.entries or {}).values()
        for held in containers.values()
        for block in held
    ]


def _reserved_in_file(view: View, content: Content) -> Iterator[Violation]:
    """Compares the reserved memory of each group with the blocks.

    If a pod was admitted again, even one that is gone by now, the invariant has a different name,
    because such a pod releases memory that was never reserved for it.
    """
    blocks = _all_blocks(content)
    name = f"memory-file-reserves-{'for-returned-pods' if view.readmitted_pods else 'what-is-held'}"
    for group in sorted({frozenset(block.numa_affinity) for block in blocks}, key=sorted):
        for message in _reservation_mismatches(content.machine_state or {}, group, blocks):
            yield Violation(name, _REQUIREMENT, message)


def _reservation_mismatches(
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
                f"nodes {_numbers(group)}: containers hold {plural(held, 'byte')} of {kind},"
                f" {FILE_NAME} has {said:,} reserved"
            )


def _of(nodes: Mapping[int, Any], node: int, kind: str) -> int:
    table = nodes[node].memory_map.get(kind) if node in nodes else None
    return table.reserved if table else 0


_MEMORY = "memory"


def on_start(view: View) -> Iterator[Violation]:
    """Checks that a start reports all memory except the reservation as allocatable."""
    if not keeps_memory(view.config, view.kubernetes):
        return
    given = {(block.numa, block.type): block.size for block in view.start_answer.memory}
    due = {
        (NUMASet([node]), kind): size for (node, kind), size in allocatable(view).items() if size
    }
    for numa, kind in sorted({*given, *due}, key=str):
        said, size = given.get((numa, kind), 0), due.get((numa, kind), 0)
        if said != size:
            yield Violation(
                "memory-allocatable-but-reserved",
                "MEM-RESERVE-001",
                f"node {numa} has {plural(size, 'byte')} of {kind} left after its reservation,"
                f" but the implementation reports {said:,}",
                size=said,
            )


def allocatable(view: View) -> dict[tuple[int, str], int]:
    """The allocatable bytes, by node and memory type."""
    reserved = reserved_memory(view.config)
    return {
        (node, kind): max(0, total - reserved.get(node, {}).get(kind, 0))
        for (node, kind), total in _totals(view.facts).items()
    }


def _totals(facts: Facts) -> dict[tuple[int, str], int]:
    """All bytes, by node and memory type; huge pages are not counted as memory."""
    found: dict[tuple[int, str], int] = {}
    for node in facts.machine.topology or ():
        pools = {
            f"hugepages-{format_kilobytes(pool.page_size)}": pool.page_size * 1024 * pool.num_pages
            for pool in node.hugepages or ()
        }
        found |= {(node.node_id, kind): size for kind, size in pools.items()}
        found[node.node_id, _MEMORY] = max(0, node.memory - sum(pools.values()))
    return found


def on_state(view: View) -> Iterator[Violation]:
    """Checks the memory in a state."""
    if not keeps_memory(view.config, view.kubernetes):
        yield from _nothing_pinned(view)
        return
    yield from _requests(view)
    yield from _groups(view)
    if view.budgets:
        # Shared memory would be counted several times.
        return
    yield from _capacity(view)
    if view.exact:
        yield from _of_file(view)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """Checks that a refused pod leaves the groups of nodes unchanged."""
    if keeps_memory(after.config, after.kubernetes) and after.exact:
        yield from _of_files(before, after)


def _nothing_pinned(view: View) -> Iterator[Violation]:
    for place, container in view.containers():
        if container.memory:
            message = f"container {format_place(place)} has memory pinned under the None policy"
            yield Violation("policy-none-pins-no-memory", "MEM-NONE-001", message, places=(place,))


def _requests(view: View) -> Iterator[Violation]:
    due = {uid: pinned_memory(pod) for uid, pod in view.pod_readings.items()}
    for place, container in view.containers():
        uid, name = place
        if uid in view.reclassified_pods:
            continue
        given: Counter[str] = Counter()
        for block in container.memory:
            given[block.type] += block.size
        wanted = due[uid][name]
        if not wanted and uid in view.budgets:
            continue
        taken = _max_reuse(view, place, due[uid])
        for kind in sorted({*given, *wanted}):
            got, asked = given[kind], wanted.get(kind, 0)
            if got > asked or (taken is not None and got < asked - taken[kind]):
                yield Violation(
                    "memory-as-requested" if wanted else "memory-of-guaranteed-only",
                    "MEM-STATIC-001" if wanted else "MEM-STATIC-002",
                    f"container {format_place(place)} is due"
                    f" {plural(asked, 'byte')} of {kind} but has"
                    f" {got:,}",
                    places=(place,),
                    size=got,
                )


def _max_reuse(view: View, place: Place, amounts_due: Mapping[str, Amounts]) -> Counter[str] | None:
    """The most memory that other containers may reuse from a container; None if unknown.

    Later containers inherit an init container's memory. They may reuse it repeatedly if one of them
    ended and was admitted again.
    """
    uid, name = place
    taken: Counter[str] = Counter()
    if name not in view.passing(uid):
        return taken
    if (
        view.was_there(uid)
        or uid in view.readmitted_pods
        or any(one == uid for one, _ in view.ended_containers)
    ):
        return None
    names = [one.name for one in view.pod_readings[uid].containers]
    for later in names[names.index(name) + 1 :]:
        taken.update(amounts_due[later])
    return taken


def _blocks(view: View) -> Iterator[tuple[Place, messages.MemoryBlock]]:
    for place, container in view.containers():
        for block in container.memory:
            yield place, block


def _groups(view: View) -> Iterator[Violation]:
    places: dict[NUMASet, list[Place]] = {}
    for place, block in _blocks(view):
        places.setdefault(block.numa, []).append(place)
    groups = sorted(places, key=lambda nodes: nodes.mask)
    for number, left in enumerate(groups):
        for right in groups[number + 1 :]:
            if left.isdisjoint(right):
                continue
            first = {nodes: _first(view, places[nodes]) for nodes in (left, right)}
            name = "memory-groups-disjoint"
            if min(len(left), len(right)) == 1:
                alone, group = sorted((left, right), key=len)
                later = _came_later(view, first[group], first[alone])
                name = f"memory-node-{'in-use-joins-no-group' if later else 'alone-or-in-group'}"
            message = (
                f"{format_place(first[left])} has memory on {nodes_of(left)},"
                f" {format_place(first[right])} on"
                f" {nodes_of(right)}"
            )
            yield Violation(name, "MEM-GROUP-001", message, places=(first[left], first[right]))


def _first(view: View, places: list[Place]) -> Place:
    return min(places, key=lambda place: _admission_order(view, place))


def _admission_order(view: View, place: Place) -> tuple[int, int]:
    """The position of a container in the order of allocation: by pod, then by container."""
    uid, name = place
    names = [one.name for one in view.pod_readings[uid].containers]
    return list(view.pods).index(uid), names.index(name)


def _came_later(view: View, place: Place, other: Place) -> bool:
    """Whether a container was certainly allocated after another; a restart may change the order."""
    anew = view.starts > 1 or view.readmitted_pods & {place[0], other[0]}
    return not anew and _admission_order(view, place) > _admission_order(view, other)


def _capacity(view: View) -> Iterator[Violation]:
    """Checks that no set of nodes with blocks provides more memory than it has."""
    there = allocatable(view)
    blocks = [block for _, block in _blocks(view)]
    for kind in sorted({block.type for block in blocks}):
        sets = {block.numa for block in blocks if block.type == kind}
        for nodes in sorted(sets, key=lambda nodes: nodes.mask):
            held = sum(
                block.size for block in blocks if block.type == kind and block.numa.issubset(nodes)
            )
            most = sum(there.get((node, kind), 0) for node in nodes)
            if held > most:
                message = (
                    f"{plural(held, 'byte')} of {kind} pinned to {nodes_of(nodes)}, which can"
                    f" provide only {most:,}"
                )
                yield Violation("memory-never-exceeded", "MEM-STATIC-009", message, size=held)
