"""Memory: the reservation, what is pinned and where, and the Memory Manager's checkpoint file."""

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
    """One node: how many blocks lie on it, its tables, and the group that it is used with."""

    number_of_assignments: int
    memory_map: dict[str, WrittenTable]
    cells: tuple[int, ...]


class WrittenBlock(msgspec.Struct, frozen=True, rename="camel"):
    """Memory of one type on a group of nodes."""

    numa_affinity: tuple[int, ...]
    type: str
    size: int


class Content(File, frozen=True, rename="camel"):
    """What the file holds, as far as it is looked at; null stands for nothing."""

    machine_state: dict[int, WrittenNode] | None = None
    entries: dict[str, dict[str, tuple[WrittenBlock, ...]]] | None = None


def _of_file(view: View) -> Iterator[Violation]:
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
    yield from _reserved_in_file(view, content)


def _of_files(before: View, after: View) -> Iterator[Violation]:
    """A refused pod takes no node out of the group that it is used with."""
    try:
        sides = _content(before), _content(after)
    except ValueError:
        return
    was, now = ((side.machine_state or {}) if side else {} for side in sides)
    for node in sorted(was.keys() & now.keys()):
        if len(was[node].cells) > 1 and now[node].cells == (node,):
            message = (
                f"after a refusal node {node} is alone in {FILE_NAME}, before it in the group"
                f" {_numbers(was[node].cells)}"
            )
            yield Violation("refusal-keeps-groups", "NODE-REFUSED-001", message)


def _content(view: View) -> Content | None:
    """What the file says, None where there is none.

    Raises:
        ValueError: it cannot be read.
        msgspec.DecodeError: likewise.
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
                f"{place} has {_format_blocks(held.get(place))}; {FILE_NAME} says"
                f" {_format_blocks(said.get(place))}"
            )
            yield Violation("memory-file-says-what-is-held", _REQUIREMENT, message)


def _numbers(nodes: Iterable[int]) -> str:
    """Node ids that a file has, which need be neither sorted nor possible."""
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


def _reserved_in_file(view: View, content: Content) -> Iterator[Violation]:
    """What nodes say is reserved on them, against the blocks.

    What is wrong since a pod came again has a name of its own, also when that pod is gone: it gave
    back what was never reserved for it.
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
                f"nodes {_numbers(group)}: {plural(held, 'byte')} of {kind} held,"
                f" {said:,} in the file"
            )


def _of(nodes: Mapping[int, Any], node: int, kind: str) -> int:
    table = nodes[node].memory_map.get(kind) if node in nodes else None
    return table.reserved if table else 0


_MEMORY = "memory"


def on_start(view: View) -> Iterator[Violation]:
    """What a start must say of the machine's memory: all of it but the reservation."""
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
                f"node {numa} has {plural(size, 'byte')} of {kind} next to its reservation,"
                f" {said:,} by the implementation",
                size=said,
            )


def allocatable(view: View) -> dict[tuple[int, str], int]:
    """The bytes that can be allocated, by node and memory type."""
    reserved = reserved_memory(view.config)
    return {
        (node, kind): max(0, total - reserved.get(node, {}).get(kind, 0))
        for (node, kind), total in _totals(view.facts).items()
    }


def _totals(facts: Facts) -> dict[tuple[int, str], int]:
    """All bytes by node and memory type; huge pages are not memory besides."""
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
    """What must hold of any state."""
    if not keeps_memory(view.config, view.kubernetes):
        yield from _nothing_pinned(view)
        return
    yield from _requests(view)
    yield from _groups(view)
    if view.budgets:
        # What several containers share would count more than once.
        return
    yield from _capacity(view)
    if view.exact:
        yield from _of_file(view)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """A refused pod leaves the groups of nodes as they were."""
    if keeps_memory(after.config, after.kubernetes) and after.exact:
        yield from _of_files(before, after)


def _nothing_pinned(view: View) -> Iterator[Violation]:
    for place, container in view.containers():
        if container.memory:
            message = f"container {format_place(place)} has memory pinned under policy None"
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
                    f" {plural(asked, 'byte')} of {kind} and has"
                    f" {got:,}",
                    places=(place,),
                    size=got,
                )


def _max_reuse(view: View, place: Place, amounts_due: Mapping[str, Amounts]) -> Counter[str] | None:
    """The most that others may have of a container's memory; None where that is not known.

    What an init container leaves to those after it is theirs. They may take it more than once if
    one of them ended and came again.
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
    """When a container was served: with its pod, and there in the order of containers."""
    uid, name = place
    names = [one.name for one in view.pod_readings[uid].containers]
    return list(view.pods).index(uid), names.index(name)


def _came_later(view: View, place: Place, other: Place) -> bool:
    """Whether a container was surely served after another; a restart may serve some anew."""
    anew = view.starts > 1 or view.readmitted_pods & {place[0], other[0]}
    return not anew and _admission_order(view, place) > _admission_order(view, other)


def _capacity(view: View) -> Iterator[Violation]:
    """No set of nodes may hold more than it has; the sets that blocks lie on are enough."""
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
                    f"{plural(held, 'byte')} of {kind} pinned to {nodes_of(nodes)}, with {most:,}"
                    " next to the reservation"
                )
                yield Violation("memory-never-exceeded", "MEM-STATIC-009", message, size=held)
