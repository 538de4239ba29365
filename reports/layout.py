"""A machine as nested groups, as drawn: sockets, NUMA nodes, caches, cores.

Usually a socket contains NUMA nodes. If a node spans several sockets (virtual machines, old
servers), nodes contain sockets instead, so that no node is drawn in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

Kind = Literal["machine", "socket", "node", "cache", "elsewhere"]


@dataclass(frozen=True, slots=True)
class DrawnCore:
    """A physical core: its id, its socket, and the CPUs that are its threads."""

    core: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the machine drawn as a box around smaller groups or cores.

    `label` names it, `detail` describes its size, `note` is for a tooltip; `node` is the NUMA
    node's id if the group is a whole node.
    """

    kind: Kind
    label: str
    detail: str = ""
    note: str = ""
    groups: tuple[Group, ...] = ()
    cores: tuple[DrawnCore, ...] = ()
    node: int | None = None


def cpus_of(machine: MachineInfo) -> frozenset[int]:
    """All logical CPUs in the machine's topology."""
    return frozenset(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )


def arrange(machine: MachineInfo, elsewhere: Iterable[int] = ()) -> Group:
    """The machine as nested groups.

    Args:
        machine: the machine to draw.
        elsewhere: CPUs that have an owner but are not in the topology (offline or wrong ones);
            they come last, in a separate group.
    """
    # The kubelet lists node 10 before node 2.
    nodes = sorted(machine.topology or (), key=lambda node: node.node_id)
    populated = [node for node in nodes if node.cores]
    spanning = any(len(_sockets(node.cores or ())) > 1 for node in populated)
    parts = _nodes_of_sockets(populated) if spanning else _sockets_of_nodes(populated)
    parts += [_node(node, ()) for node in nodes if not node.cores]
    if missing := tuple(DrawnCore(None, (cpu,)) for cpu in sorted(elsewhere)):
        parts.append(Group("elsewhere", "Not in the topology", cores=missing))
    return Group("machine", "Machine", _counts(machine), groups=tuple(parts))


def _sockets(cores: Iterable[Core]) -> dict[int, list[Core]]:
    found: dict[int, list[Core]] = {}
    for core in cores:
        found.setdefault(core.socket_id, []).append(core)
    return dict(sorted(found.items()))


def _sockets_of_nodes(nodes: list[Node]) -> list[Group]:
    found: dict[int, list[Node]] = {}
    for node in nodes:
        found.setdefault((node.cores or ())[0].socket_id, []).append(node)
    return [
        Group(
            "socket",
            f"Socket {socket}",
            _size([core for node in inside for core in node.cores or ()]),
            groups=tuple(_node(node, node.cores or ()) for node in inside),
        )
        for socket, inside in sorted(found.items())
    ]


def _nodes_of_sockets(nodes: list[Node]) -> list[Group]:
    return [
        _node(
            node,
            (),
            tuple(
                _with_caches(Group("socket", f"Socket {socket}"), cores)
                for socket, cores in _sockets(node.cores or ()).items()
            ),
        )
        for node in nodes
    ]


def _node(node: Node, cores: Iterable[Core], sockets: tuple[Group, ...] = ()) -> Group:
    """A node that contains its cores, or the sockets that it spans."""
    caches = [_cache_name(cache) for cache in node.caches or ()]
    empty = [] if node.cores else ["no CPUs"]
    pages = [_pages(one) for one in node.hugepages or () if one.num_pages]
    distances = " ".join(str(one) for one in node.distances or ())
    group = Group(
        "node",
        f"Node {node.node_id}",
        " · ".join([bytes_text(node.memory) if node.memory else "no memory", *empty, *caches]),
        "; ".join([*pages, *([f"distances {distances}"] if distances else [])]),
        groups=sockets,
        node=node.node_id,
    )
    return _with_caches(group, list(cores))


def _with_caches(group: Group, cores: list[Core]) -> Group:
    """The group with its cores, in boxes by uncore cache if there are several."""
    if not cores:
        return group
    found: dict[tuple[int, ...], list[Core]] = {}
    cores = sorted(cores, key=lambda core: min(core.thread_ids or (0,)))
    for core in cores:
        found.setdefault(tuple(cache.id for cache in core.uncore_caches or ()), []).append(core)
    if len(found) == 1:
        detail = " · ".join(one for one in (group.detail, _cache_names(cores[0])) if one)
        return _replaced(group, detail, (), cores)
    boxes = tuple(
        _replaced(Group("cache", _cache_names(inside[0]) or "no cache"), "", (), inside)
        for inside in found.values()
    )
    return _replaced(group, group.detail, boxes, ())


def _replaced(group: Group, detail: str, groups: tuple[Group, ...], cores: Iterable[Core]) -> Group:
    drawn = tuple(DrawnCore(core.core_id, tuple(sorted(core.thread_ids or ()))) for core in cores)
    return Group(group.kind, group.label, detail, group.note, groups, drawn, group.node)


def _cache_names(core: Core) -> str:
    return ", ".join(_cache_name(cache, number=True) for cache in core.uncore_caches or ())


def _cache_name(cache: UncoreCache, *, number: bool = False) -> str:
    level = f"L{cache.level}" if cache.level else "cache"
    parts = [level, *([f"#{cache.id}"] if number else [])]
    return " ".join([*parts, *([bytes_text(cache.size)] if cache.size else [])])


def _pages(pages: HugePages) -> str:
    size = bytes_text(pages.page_size * 1024)
    return f"{plural(pages.num_pages, 'huge page')} of {size}"


def _counts(machine: MachineInfo) -> str:
    # Counted as drawn: cAdvisor's own counts of cores and sockets are wrong on some machines.
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    sockets = plural(len({core.socket_id for core in cores}), "socket")
    nodes = plural(len(machine.topology or ()), "NUMA node")
    return f"{sockets}, {nodes}, {_size(cores)}"


def _size(cores: list[Core]) -> str:
    threads = sum(len(core.thread_ids or ()) for core in cores)
    return f"{plural(len(cores), 'core')}, {plural(threads, 'CPU')}"


def bytes_text(size: int) -> str:
    """A number of bytes in the largest binary unit, with at most one decimal place."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:  # noqa: PLR2004  # the step between binary units
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"
