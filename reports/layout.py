"""The contents of a drawing: a machine as nested groups, the owners of CPUs, memory, and devices.

Usually a socket contains NUMA nodes. If a node spans several sockets (on virtual machines and old
servers), nodes contain sockets instead, so that each node stays in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Literal

from numaproof.inputs.plurals import plural
from numaproof.inputs.sizes import size
from numaproof.protocol.sets import CPUSet, IntegerSet, ListFormatError
from numaproof.reports.untrusted_text import one_line
from numaproof.reports.values import group_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache


GroupKind = Literal["machine", "socket", "node", "cache", "elsewhere"]


@dataclass(frozen=True, slots=True)
class DrawnCore:
    """A physical core: its id, and the CPUs that are its threads."""

    core: int | None
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the machine, drawn as a box around smaller groups or cores.

    `label` is its name, `detail` its size, `note` a tooltip. `node` is the NUMA node's id if the
    group is a whole node.
    """

    kind: GroupKind
    label: str
    detail: str = ""
    note: str = ""
    groups: tuple[Group, ...] = ()
    cores: tuple[DrawnCore, ...] = ()
    node: int | None = None


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """A cache below the uncore caches, such as an L2 cache, and the CPUs that share it."""

    label: str
    cpus: frozenset[int]


def cpus_of(machine: MachineInfo) -> frozenset[int]:
    """Returns all logical CPUs in the machine's topology."""
    return frozenset(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )


def arrange(
    machine: MachineInfo,
    elsewhere: Iterable[int] = (),
    stock: Stock | None = None,
    caches: Sequence[CacheGroup] = (),
) -> Group:
    """Arranges a machine as nested groups.

    Args:
        machine: the machine to draw.
        elsewhere: CPUs that have an owner but are not in the topology (offline or invalid ones);
            they come last, in a separate group.
        stock: memory and devices; nodes with any of these have groups of their own.
        caches: caches that divide the cores of a group further.
    """
    # The kubelet lists node 10 before node 2.
    nodes = sorted(machine.topology or (), key=lambda node: node.node_id)
    populated = [node for node in nodes if node.cores]
    spanning = any(len(_sockets(node.cores or ())) > 1 for node in populated)
    parts = _nodes_of_sockets(populated) if spanning else _sockets_of_nodes(populated)
    bare = [_node(node, ()) for node in nodes if not node.cores]
    by_cpu = {cpu: cache for cache in caches for cpu in cache.cpus}
    parts = [_with_shared(part, by_cpu) for part in parts] if caches else parts
    parts += _alike_together(bare, stock or NOTHING)
    if missing := tuple(DrawnCore(None, (cpu,)) for cpu in sorted(elsewhere)):
        parts.append(Group("elsewhere", "Not in the topology", cores=missing))
    return Group("machine", "Machine", _counts(machine), groups=tuple(parts))


def _sockets(cores: Iterable[Core]) -> dict[int, list[Core]]:
    return dict(sorted(group_values((core.socket_id, core) for core in cores).items()))


def _sockets_of_nodes(nodes: list[Node]) -> list[Group]:
    found = group_values(((node.cores or ())[0].socket_id, node) for node in nodes)
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
    caches = [_cache_name(cache) for cache in node.caches or ()]
    empty = [] if node.cores else ["no CPUs"]
    pages = [_pages(one) for one in node.hugepages or () if one.num_pages]
    distances = " ".join(str(one) for one in node.distances or ())
    group = Group(
        "node",
        f"Node {node.node_id}",
        " · ".join([size(node.memory) if node.memory else "no memory", *empty, *caches]),
        "; ".join([*pages, *([f"distances {distances}"] if distances else [])]),
        groups=sockets,
        node=node.node_id,
    )
    return _with_caches(group, cores)


def _with_caches(group: Group, cores: Iterable[Core]) -> Group:
    """Adds cores to a group, in a box for each uncore cache if there are several caches."""
    found = group_values(
        (tuple(cache.id for cache in core.uncore_caches or ()), core)
        for core in sorted(cores, key=lambda core: min(core.thread_ids or (0,)))
    )
    boxes = tuple(
        Group("cache", _cache_names(inside[0]), cores=tuple(map(_drawn_core, inside)))
        for inside in found.values()
    )
    if len(boxes) == 1:
        detail = " · ".join(filter(None, (group.detail, boxes[0].label)))
        return replace(group, detail=detail, cores=boxes[0].cores)
    named = (replace(box, label=box.label or "no cache") for box in boxes)
    return replace(group, groups=tuple(named)) if boxes else group


def _with_shared(group: Group, by_cpu: Mapping[int, CacheGroup]) -> Group:
    """Divides the cores of a group by cache; cores with equal caches of their own stay together."""
    if group.groups:
        return replace(group, groups=tuple(_with_shared(one, by_cpu) for one in group.groups))

    def cache_of(core: DrawnCore) -> tuple[str, frozenset[int]]:
        cache = by_cpu.get(core.cpus[0]) if core.cpus else None
        if cache is None:
            return "", frozenset()
        own = cache.cpus <= frozenset(core.cpus)
        return (f"{cache.label} per core", frozenset()) if own else (cache.label, cache.cpus)

    found = group_values((cache_of(core), core) for core in group.cores)
    boxes = tuple(Group("cache", label, cores=tuple(cores)) for (label, _), cores in found.items())
    if len(boxes) == 1:
        detail = " · ".join(filter(None, (group.detail, boxes[0].label)))
        return replace(group, detail=detail)
    return replace(group, groups=boxes, cores=()) if boxes else group


def _alike_together(nodes: list[Group], stock: Stock) -> list[Group]:
    """Merges identical neighbouring nodes that hold nothing but unused memory."""

    def look(node: Group) -> tuple[str, int | None]:
        return node.detail, node.node if of_node(stock, node.node) else None

    merged = []
    for _, group in groupby(nodes, key=look):
        first, *others = group
        if others:
            ids = IntegerSet(one.node or 0 for one in (first, *others))
            first = replace(first, label=f"Nodes {ids}", detail=f"{first.detail} each")
        merged.append(first)
    return merged


def _drawn_core(core: Core) -> DrawnCore:
    return DrawnCore(core.core_id, tuple(sorted(core.thread_ids or ())))


def _cache_names(core: Core) -> str:
    return ", ".join(_cache_name(cache, number=True) for cache in core.uncore_caches or ())


def _cache_name(cache: UncoreCache, *, number: bool = False) -> str:
    level = f"L{cache.level}" if cache.level else "cache"
    parts = [level, *([f"#{cache.id}"] if number else [])]
    return " ".join([*parts, *([size(cache.size)] if cache.size else [])])


def _pages(pages: HugePages) -> str:
    page = size(pages.page_size * 1024)
    return f"{plural(pages.num_pages, 'huge page')} of {page}"


def _counts(machine: MachineInfo) -> str:
    # Counted as drawn: cAdvisor's own counts of cores and sockets are wrong on some machines.
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    sockets = plural(len({core.socket_id for core in cores}), "socket")
    nodes = plural(len(machine.topology or ()), "NUMA node")
    memory = sum(node.memory for node in machine.topology or ())
    return f"{sockets}, {nodes}, {_size(cores)}" + (f", {size(memory)}" if memory else "")


def _size(cores: list[Core]) -> str:
    threads = sum(len(core.thread_ids or ()) for core in cores)
    return f"{plural(len(cores), 'core')}{_kinds(cores)}, {plural(threads, 'CPU')}"


def _kinds(cores: list[Core]) -> str:
    """Counts performance and efficient cores; only the latter share level 2 caches."""
    levels = [{cache.level for cache in core.caches or ()} for core in cores]
    performance = sum(2 in one for one in levels)  # noqa: PLR2004  # the level of a cache
    if performance in {0, len(cores)} or not all(levels):
        return ""
    return f" ({performance} P, {len(cores) - performance} E)"


RESERVED = "reserved"
"""The owner name for CPUs reserved for the system."""

OFFLINE = "offline"
"""The owner name for offline CPUs."""

Kind = Literal["container", "shared", "reserved", "offline", "several", "nobody", "plain"]

_LETTERS = ascii_uppercase + ascii_lowercase


def _letters(number: int) -> str:
    """Returns the letter of a container by its number: A to Z, a to z, then AA, AB and so on."""
    rest, last = divmod(number, len(_LETTERS))
    return (_letters(rest - 1) if rest else "") + _LETTERS[last]


_LOOKS: Mapping[Kind, tuple[str, str]] = {
    "shared": ("·", "shared pool"),
    "reserved": ("#", "reserved for the system"),
    "offline": ("x", "offline"),
    "several": ("!", "more than one owner"),
    "nobody": ("-", "no owner"),
    "plain": ("", ""),
}
"""The symbol and the name for CPUs that are not exclusive to a container."""

_SPECIAL: Mapping[str, Kind] = {RESERVED: "reserved", OFFLINE: "offline"}


@dataclass(frozen=True, slots=True)
class Holder:
    """How a CPU is drawn: its kind, its symbol and its owner's name.

    `number` counts containers from zero and selects the colour. `parts` holds the numbers of all
    owners if there are several.
    """

    kind: Kind
    symbol: str
    name: str
    number: int = 0
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ownership:
    """The holder of each CPU, the legend with the CPUs of each holder, and holders by name."""

    holders: Mapping[int, Holder]
    legend: tuple[tuple[Holder, str], ...]
    elsewhere: frozenset[int]
    by_name: Mapping[str, Holder] = field(default_factory=dict)

    @property
    def symbol_width(self) -> int:
        """The length of the longest symbol; 0 without owners."""
        return max((len(holder.symbol) for holder, _ in self.legend), default=0)


def numbering(drawings: Iterable[Iterable[Owner]]) -> Mapping[str, int]:
    """Numbers the containers of successive drawings, so that each keeps its letter and colour."""
    names = (owner.name for owners in drawings for owner in owners)
    return {
        name: number
        for number, name in enumerate(dict.fromkeys(n for n in names if n not in _SPECIAL))
    }


def ownership(
    cpus: frozenset[int],
    owners: Iterable[Owner],
    shared: str,
    numbers: Mapping[str, int] | None = None,
) -> Ownership:
    """Determines the holder of each CPU.

    A CPU that is reserved and in the shared pool is drawn as reserved, because the kubelet keeps
    reserved CPUs in the shared pool. Without owners or a shared pool, all CPUs are plain.

    Args:
        cpus: the CPUs of the machine.
        owners: the owners of CPUs. The names `RESERVED` and `OFFLINE` are special; all other names
            are containers.
        shared: the shared pool, in the Linux list format.
        numbers: the number of each container, from `numbering`.
    """
    ordered = sorted(owners, key=lambda owner: owner.name in _SPECIAL)
    if not ordered and not shared:
        plain = Holder("plain", *_LOOKS["plain"])
        return Ownership(dict.fromkeys(cpus, plain), (), frozenset())
    numbers = numbers or numbering([ordered])
    named = {owner.name: _holder(owner.name, numbers.get(owner.name, 0)) for owner in ordered}
    sets = [(named[owner.name], _parse_cpus(owner.cpus)) for owner in ordered]
    sets.append((Holder("shared", *_LOOKS["shared"]), _parse_cpus(shared)))
    claims = group_values((cpu, holder) for holder, claimed in sets for cpu in claimed)
    nobody = Holder("nobody", *_LOOKS["nobody"])
    everyone = cpus | claims.keys()
    holders = {cpu: _combined_holder(claims.get(cpu, [nobody])) for cpu in sorted(everyone)}
    legend = _legend(sets, holders)
    return Ownership(holders, legend, frozenset(claims.keys() - cpus), named)


def _holder(name: str, number: int) -> Holder:
    if kind := _SPECIAL.get(name):
        return Holder(kind, *_LOOKS[kind])
    return Holder("container", _letters(number), one_line(name, _LONGEST), number)


def _parse_cpus(text: str) -> CPUSet:
    # A picture may come from a damaged file. Draw what can be parsed.
    try:
        return CPUSet.parse(text)
    except ListFormatError:
        return CPUSet()


def _combined_holder(claims: list[Holder]) -> Holder:
    kinds = {holder.kind for holder in claims}
    if len(claims) == 1 or kinds == {"reserved", "shared"}:
        return claims[0]
    return Holder(
        "several",
        _LOOKS["several"][0],
        " and ".join(holder.name for holder in claims),
        parts=tuple(holder.number for holder in claims if holder.kind == "container"),
    )


def _legend(
    sets: list[tuple[Holder, CPUSet]], holders: Mapping[int, Holder]
) -> tuple[tuple[Holder, str], ...]:
    rows = [
        (holder, str(claimed))
        for holder, claimed in sets
        if claimed or holder.kind == "container"  # containers may have only devices
    ]
    kinds: tuple[Kind, ...] = ("several", "nobody")
    for kind in kinds:
        if found := {cpu: holder for cpu, holder in holders.items() if holder.kind == kind}:
            parts = next(iter(found.values())).parts
            rows.append((Holder(kind, *_LOOKS[kind], parts=parts), str(CPUSet(found))))
    return tuple(rows)


_LONGEST = 60


@dataclass(frozen=True, slots=True)
class DrawnMemory:
    """Memory of one type on one NUMA node, in bytes.

    `reserved` is for the system; `allocated` belongs to containers. `group` lists the nodes in the
    group that includes this node; it is empty if the node is in no group.
    """

    node: int
    kind: str
    total: int
    reserved: int
    allocated: int
    group: str = ""

    @property
    def shares(self) -> tuple[float, float]:
        """The reserved and allocated fractions of the total; their sum is at most 1."""
        if not self.total:
            return 0.0, 0.0
        reserved = min(self.reserved / self.total, 1.0)
        return reserved, min(self.allocated / self.total, 1.0 - reserved)

    @property
    def text(self) -> str:
        """The amounts as text, such as ``3 GiB of 16 GiB allocated, 100 MiB reserved``."""
        text = f"{size(self.allocated)} of {size(self.total)} allocated"
        if self.reserved:
            text += f", {size(self.reserved)} reserved"
        return f"{text}, with nodes {self.group}" if self.group else text


@dataclass(frozen=True, slots=True)
class DrawnDevice:
    """A device near NUMA nodes; `owner` is the owner's name, or empty for a free device."""

    resource: str
    id: str
    nodes: tuple[int, ...] = ()
    healthy: bool = True
    owner: str = ""

    @property
    def label(self) -> str:
        """The id, escaped and shortened."""
        return one_line(self.id, _LONGEST)


@dataclass(frozen=True, slots=True)
class Stock:
    """The memory and devices of a group or of a whole machine."""

    memory: tuple[DrawnMemory, ...] = ()
    devices: tuple[DrawnDevice, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.memory or self.devices)

    def by_resource(self) -> Mapping[str, list[DrawnDevice]]:
        """Returns the devices by resource."""
        return group_values((one_line(one.resource, _LONGEST), one) for one in self.devices)


NOTHING = Stock()


def same_nodes(
    machine: MachineInfo, before: tuple[Ownership, Stock], after: tuple[Ownership, Stock]
) -> frozenset[int]:
    """Returns the NUMA nodes whose CPUs, memory and devices are held alike in two drawings."""
    (old, old_stock), (new, new_stock) = before, after
    return frozenset(
        node.node_id
        for node in machine.topology or ()
        if of_node(old_stock, node.node_id) == of_node(new_stock, node.node_id)
        and all(
            (old.holders[cpu].kind, old.holders[cpu].name)
            == (new.holders[cpu].kind, new.holders[cpu].name)
            for core in node.cores or ()
            for cpu in core.thread_ids or ()
        )
    )


def of_node(stock: Stock, node: int | None) -> Stock:
    """Returns the memory of a node and the devices near this node alone."""
    return Stock(
        tuple(one for one in stock.memory if one.node == node),
        tuple(one for one in stock.devices if one.nodes == (node,)),
    )


def without_node(stock: Stock) -> Stock:
    """Returns the devices near several nodes or none."""
    return Stock(
        (),
        tuple(
            replace(one, resource=f"{one.resource} (not on a single node)")
            for one in stock.devices
            if len(one.nodes) != 1
        ),
    )
