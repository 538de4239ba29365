"""Places CPUs on NUMA nodes, cores and sockets where a text doesn't say.

Linux numbers the first threads of all cores before the second threads on most servers, and a
core's threads one after the other on some (``siblings=adjacent``).
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.formats.machines.assumptions import MAX_COUNT, NUMBERINGS, SIBLINGS
from numaproof.formats.machines.description import CPU, DescriptionError, Gap
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.formats.machines.assumptions import Assumptions
    from numaproof.formats.machines.description import Description

MAX_NODES = 1024

_ADJACENT = SIBLINGS.index("adjacent")
_ALTERNATING = NUMBERINGS.index("alternating")
_ADJACENT_SIBLINGS = ("ppc64", "ppc64le", "s390x")
"""The architectures on which Linux numbers a core's threads one after the other."""


def place(
    text: Description, assume: Assumptions
) -> tuple[tuple[CPU, ...], tuple[int, ...], tuple[Gap, ...]]:
    """Returns the CPUs with a core and a socket each, the nodes' numbers, and what is assumed.

    The CPUs have a node each unless the machine has none (an empty tuple).

    Raises:
        DescriptionError: the CPUs can't be divided like that.
    """
    gaps: list[Gap] = []
    nodes = _nodes(text, assume, gaps)
    if len(nodes) > MAX_NODES:
        raise DescriptionError(f"more than {MAX_NODES} NUMA nodes, which Linux doesn't support")
    online = [cpu for cpu in text.cpus if cpu.online]
    if not text.cpus:
        online = _number(text, nodes, assume, gaps)
    elif any(cpu.core is None for cpu in online):
        online = _with_cores(text, online, assume, gaps)
    if nodes and any(cpu.node is None for cpu in online):
        online = _on_nodes(online, nodes)
    if any(cpu.socket is None for cpu in online):
        online = _with_sockets(text, online, assume, gaps)
    offline = [cpu for cpu in text.cpus if not cpu.online]
    return tuple(sorted((*online, *offline), key=lambda cpu: cpu.number)), nodes, tuple(gaps)


def _nodes(text: Description, assume: Assumptions, gaps: list[Gap]) -> tuple[int, ...]:
    if text.nodes is not None:
        return tuple(sorted(node.number for node in text.nodes))
    count = assume.take("nodes")
    if count is None:
        count = text.likely_nodes
        few = "a single one" if count == 1 else f"{count}"
        gaps.append(Gap("nodes", "the NUMA nodes", few, "--assume nodes=N"))
    return tuple(range(count))


def _number(
    text: Description, nodes: tuple[int, ...], assume: Assumptions, gaps: list[Gap]
) -> list[CPU]:
    """Numbers CPUs whose numbers the text doesn't say, node by node."""
    counts: dict[int | None, int] = {
        node.number: node.cpus for node in text.nodes or () if node.cpus is not None
    } or {None: text.cpu_count or 0}
    total = sum(counts.values())
    if not 0 < total <= MAX_COUNT:
        raise DescriptionError(f"{plural(total, 'CPU')}; expected 1 to {MAX_COUNT}")
    threads, style = _threads(text, [], assume, gaps)
    if any(count % threads for count in counts.values()):
        raise DescriptionError(f"{plural(total, 'CPU')} can't form cores of {threads} threads")
    places = [node for node, count in counts.items() for _ in range(count // threads)]
    numbering = assume.take("numbering")
    if numbering == _ALTERNATING:
        places = _in_turns(places)
    elif numbering is None:
        order, remedy = "from 0", ""
        if len(nodes) > 1:
            order, remedy = "node by node", f"--assume numbering={' or '.join(NUMBERINGS)}"
        gaps.append(Gap("numbers", "the CPUs' numbers", f"that they are numbered {order}", remedy))
    cores = len(places)
    return [
        CPU(
            number=core * threads + thread if style == _ADJACENT else core + thread * cores,
            node=node,
            core=core,
        )
        for core, node in enumerate(places)
        for thread in range(threads)
    ]


def _in_turns(places: Sequence[int | None]) -> list[int | None]:
    """Returns the cores' nodes in an order with one core of each node in turn."""
    seen: Counter[int | None] = Counter()
    turns = []
    for node in places:
        turns.append(seen[node])
        seen[node] += 1
    return [node for _, node in sorted(zip(turns, places, strict=True), key=itemgetter(0))]


def _with_cores(
    text: Description, cpus: Sequence[CPU], assume: Assumptions, gaps: list[Gap]
) -> list[CPU]:
    groups = _by_node(cpus).values()
    threads, style = _threads(
        text, [[cpu.number for cpu in group] for group in groups], assume, gaps
    )
    found: list[CPU] = []
    core = 0
    for group in groups:
        if len(group) % threads:
            raise DescriptionError(
                f"{plural(len(group), 'CPU')} of a NUMA node can't form cores of {threads} threads",
                "use `lscpu --extended`, which shows each CPU's core",
            )
        per_node = len(group) // threads
        for position, cpu in enumerate(group):
            own = position // threads if style == _ADJACENT else position % per_node
            found.append(replace(cpu, core=core + own))
        core += per_node
    if threads > 1 and assume.take("siblings") is None:
        shared = [cpu.number for cpu in found if cpu.core == found[0].core]
        gaps.append(
            Gap(
                "siblings",
                "the thread siblings",
                f"that CPUs {' and '.join(map(str, sorted(shared)))} share a core, and so on",
                f"--assume siblings={SIBLINGS[1 - style]}",
            )
        )
    return found


def _by_node(cpus: Sequence[CPU]) -> dict[int | None, list[CPU]]:
    groups: dict[int | None, list[CPU]] = {}
    for cpu in sorted(cpus, key=lambda cpu: (cpu.node or 0, cpu.number)):
        groups.setdefault(cpu.node, []).append(cpu)
    return groups


_LIKELY = (8, 4, 2)


def _threads(
    text: Description, numbers: Sequence[Sequence[int]], assume: Assumptions, gaps: list[Gap]
) -> tuple[int, int]:
    """The number of threads per core, and where they are; `numbers` are the CPUs by node."""
    threads = text.threads_per_core
    if threads is None:
        threads = assume.take("threads-per-core")
    if threads is None:
        shown = (
            one
            for one in _LIKELY
            if numbers and _is_apart(numbers, one) and not _is_regular(numbers)
        )
        threads = next(shown, text.likely_threads)
        why = ", because of the numbers of each node's CPUs" if numbers and threads > 1 else ""
        gaps.append(
            Gap(
                "siblings" if threads > 1 else "threads",
                "the threads per core",
                f"{plural(threads, 'thread')} per core{why}",
                "--assume threads-per-core=N",
            )
        )
    if threads == 1:
        return 1, 0
    style = assume.take("siblings")
    if style is None:
        are_adjacent = text.architecture in _ADJACENT_SIBLINGS or not _is_apart(numbers, threads)
        style = int(are_adjacent)
    return threads, style


def _is_apart(numbers: Sequence[Sequence[int]], threads: int) -> bool:
    """Whether each node can have its cores' first threads before all others, as Linux numbers."""
    cores = sum(map(len, numbers)) // threads
    return all(len(cpus) % threads == 0 for cpus in numbers) and all(
        second - first == cores
        for cpus in numbers
        for first, second in zip(cpus, cpus[len(cpus) // threads :], strict=False)
    )


def _is_regular(numbers: Sequence[Sequence[int]]) -> bool:
    """Whether the CPUs of each node have equal distances, which says nothing about threads."""
    return all(len({second - first for first, second in pairwise(cpus)}) <= 1 for cpus in numbers)


def _on_nodes(cpus: Sequence[CPU], nodes: tuple[int, ...]) -> list[CPU]:
    """Gives each node an equal share of consecutive cores."""
    share = _shares(cpus, len(nodes), "NUMA nodes")
    return [replace(cpu, node=nodes[share[cpu.socket, cpu.core]]) for cpu in cpus]


def _shares(cpus: Sequence[CPU], parts: int, what: str) -> dict[tuple[int | None, int | None], int]:
    """Divides cores, in the order of their first CPUs, into equal parts."""
    cores = list(
        dict.fromkeys((cpu.socket, cpu.core) for cpu in sorted(cpus, key=lambda cpu: cpu.number))
    )
    if len(cores) % parts:
        raise DescriptionError(f"{plural(len(cores), 'core')} can't be divided into {parts} {what}")
    return {core: position * parts // len(cores) for position, core in enumerate(cores)}


def _with_sockets(
    text: Description, cpus: Sequence[CPU], assume: Assumptions, gaps: list[Gap]
) -> list[CPU]:
    groups = _by_node(cpus)
    count = text.sockets or assume.take("sockets")
    if count is None:
        sockets = _by_distance(text, list(groups))
        count = len(set(sockets.values()))
        why = ", because of the distances" if text.distances and len(groups) > 1 else ""
        gaps.append(
            Gap("sockets", "the sockets", f"{plural(count, 'socket')}{why}", "--assume sockets=N")
        )
        return [replace(cpu, socket=sockets[cpu.node]) for cpu in cpus]
    if count not in (1, len(groups)):
        gaps.append(Gap("sockets", "each CPU's socket", "that CPUs are numbered by socket"))
    if len(groups) % count == 0:
        place = {node: position * count // len(groups) for position, node in enumerate(groups)}
        return [replace(cpu, socket=place[cpu.node]) for cpu in cpus]
    per_node, rest = divmod(count, len(groups))
    if rest:
        raise DescriptionError(f"{count} sockets don't fit {plural(len(groups), 'NUMA node')}")
    shares = [_shares(group, per_node, "sockets") for group in groups.values()]
    return [
        replace(cpu, socket=position * per_node + share[None, cpu.core])
        for position, (group, share) in enumerate(zip(groups.values(), shares, strict=True))
        for cpu in group
    ]


_SAME_PACKAGE = 12
"""The largest distance between nodes of one package if all nodes are equally far apart."""


def _by_distance(text: Description, nodes: Sequence[int | None]) -> Mapping[int | None, int]:
    """The socket of each node: if some nodes are farther than others, the closest share one."""
    apart: dict[int | None, int] = {node: position for position, node in enumerate(nodes)}
    order = sorted(node.number for node in text.nodes or ())
    if text.distances is None or len(nodes) == 1:
        return apart
    between = {
        (one, other): text.distances[order.index(one)][order.index(other)]
        for one in order
        for other in order
        if one != other and one in apart and other in apart
    }
    near = min(between.values())
    if near > _SAME_PACKAGE and near == max(between.values()):
        return apart
    close = {
        one: frozenset({one, *(other for other in order if between.get((one, other)) == near)})
        for one in order
        if one in apart
    }
    # On a ring of sockets, being close isn't transitive.
    if any(close[one] != close[other] for one in close for other in close[one]):
        return apart
    groups = list(dict.fromkeys(close.values()))
    return {node: groups.index(close[node]) for node in close}
