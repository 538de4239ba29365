"""Memory: what is reserved, what containers have pinned, and the groups of nodes it lies on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.conformance.judging.entitlement import keeps_memory, pinned_memory, reserved_memory
from numaproof.conformance.judging.invariants import memory_file
from numaproof.conformance.judging.invariants.view import Violation, named, nodes_of
from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.judging.entitlement import Amounts
    from numaproof.conformance.judging.invariants.view import Place, View
    from numaproof.protocol import messages

_MEMORY = "memory"


def on_start(view: View) -> Iterator[Violation]:
    """What a start must say of the machine's memory: all of it but the reservation."""
    if not keeps_memory(view.config, view.kubernetes):
        return
    given = {(block.numa, block.type): block.size for block in view.started.memory}
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
            f"hugepages-{_size(pool.page_size)}": pool.page_size * 1024 * pool.num_pages
            for pool in node.hugepages or ()
        }
        found |= {(node.node_id, kind): size for kind, size in pools.items()}
        found[node.node_id, _MEMORY] = max(0, node.memory - sum(pools.values()))
    return found


def _size(kib: int) -> str:
    """A page size as Kubernetes names it: 2Mi, 1Gi."""
    for suffix in ("Ki", "Mi", "Gi"):
        if kib % 1024:
            return f"{kib}{suffix}"
        kib //= 1024
    return f"{kib}Ti"


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
        yield from memory_file.on_state(view)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """A refused pod leaves the groups of nodes as they were."""
    if keeps_memory(after.config, after.kubernetes) and after.exact:
        yield from memory_file.on_refusal(before, after)


def _nothing_pinned(view: View) -> Iterator[Violation]:
    for place, container in view.containers():
        if container.memory:
            yield Violation(
                "policy-none-pins-no-memory",
                "MEM-NONE-001",
                f"container {named(place)} has memory pinned under policy None",
                places=(place,),
            )


def _requests(view: View) -> Iterator[Violation]:
    due = {uid: pinned_memory(pod) for uid, pod in view.parsed.items()}
    for place, container in view.containers():
        uid, name = place
        if uid in view.reclassified:
            continue
        given: Counter[str] = Counter()
        for block in container.memory:
            given[block.type] += block.size
        wanted = due[uid][name]
        if not wanted and uid in view.budgets:
            continue
        taken = _taken_over(view, place, due[uid])
        for kind in sorted({*given, *wanted}):
            got, asked = given[kind], wanted.get(kind, 0)
            if got > asked or (taken is not None and got < asked - taken[kind]):
                yield Violation(
                    "memory-as-requested" if wanted else "memory-of-guaranteed-only",
                    "MEM-STATIC-001" if wanted else "MEM-STATIC-002",
                    f"container {named(place)} is due {plural(asked, 'byte')} of {kind} and has"
                    f" {got:,}",
                    places=(place,),
                    size=got,
                )


def _taken_over(view: View, place: Place, due: Mapping[str, Amounts]) -> Counter[str] | None:
    """The most that others may have of a container's memory; None where that is not known.

    What an init container leaves to those after it is theirs. They may take it more than once if
    one of them ended and came again.
    """
    uid, name = place
    taken: Counter[str] = Counter()
    if name not in view.passing(uid):
        return taken
    if view.was_there(uid) or uid in view.returned or any(one == uid for one, _ in view.ended):
        return None
    names = [one.name for one in view.parsed[uid].containers]
    for later in names[names.index(name) + 1 :]:
        taken.update(due[later])
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
            yield Violation(
                name,
                "MEM-GROUP-001",
                f"{named(first[left])} has memory on {nodes_of(left)}, {named(first[right])} on"
                f" {nodes_of(right)}",
                places=(first[left], first[right]),
            )


def _first(view: View, places: list[Place]) -> Place:
    return min(places, key=lambda place: _turn(view, place))


def _turn(view: View, place: Place) -> tuple[int, int]:
    """When a container was served: with its pod, and there in the order of containers."""
    uid, name = place
    names = [one.name for one in view.parsed[uid].containers]
    return list(view.pods).index(uid), names.index(name)


def _came_later(view: View, place: Place, other: Place) -> bool:
    """Whether a container was surely served after another; a restart may serve some anew."""
    anew = view.starts > 1 or view.returned & {place[0], other[0]}
    return not anew and _turn(view, place) > _turn(view, other)


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
                yield Violation(
                    "memory-never-exceeded",
                    "MEM-STATIC-009",
                    f"{plural(held, 'byte')} of {kind} pinned to {nodes_of(nodes)}, with {most:,}"
                    " next to the reservation",
                    size=held,
                )
