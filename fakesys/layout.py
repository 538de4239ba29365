"""Expands a profile into CPUs and nodes: first the regular part, then the rows."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from numaproof.fakesys.caches import lay_out_caches
from numaproof.fakesys.entries import ACCESS_FILES, ID_FILES
from numaproof.fakesys.fields import RowBudget, parse_kilobytes, read, require_cpus, spread
from numaproof.fakesys.machine import (
    MAX_CPUS,
    MAX_NODES,
    Cpu,
    Machine,
    MemoryAccess,
    NUMANode,
    ProfileError,
)
from numaproof.fakesys.profile import Access, CpuRow, DerivedDistances, NodeRow, Profile, Topology
from numaproof.fakesys.ranges import Value, parse_list, parse_sequence
from numaproof.inputs.documents import PathTuple
from numaproof.inputs.plurals import plural


@dataclass
class _Draft:
    """The nodes according to the rows so far; `node_of_cpu` maps CPUs to their nodes."""

    members: dict[int, tuple[int, ...]]
    memory: dict[int, int | None] = field(default_factory=dict)
    pages: dict[int, dict[int, int]] = field(default_factory=dict)
    node_of_cpu: dict[int, int] = field(default_factory=dict)
    cpulists: dict[int, tuple[int, ...]] = field(default_factory=dict)
    access: dict[int, tuple[MemoryAccess, ...]] = field(default_factory=dict)


def lay_out_nodes(
    profile: Profile, cpus: Mapping[int, Cpu], regular: Mapping[int, tuple[int, ...]]
) -> tuple[NUMANode, ...]:
    """Returns the nodes of the regular part, as changed and extended by the rows.

    Raises:
        ProfileError: a CPU does not exist or is in two nodes, a node has no memory, or the number
            of distances is wrong.
    """
    draft = _Draft(dict(regular))
    budget = RowBudget(32)
    for i, row in enumerate(profile.nodes):
        _apply(row, ("nodes", i), draft, cpus, budget)
    order = sorted(draft.members)
    for number in order:
        if number not in draft.memory:
            fix = f"add a row `- {{nodes: {number}, memory: 16Gi}}`, or `memory: none`"
            raise ProfileError(("nodes",), f"node {number} has no memory", fix)
    initiators = {node for ways in draft.access.values() for way in ways for node in way.initiators}
    if not initiators <= set(order):
        missing = min(initiators - set(order))
        raise ProfileError(("nodes",), f"initiator {missing} is not a node")
    texts = _distances(profile, order, draft.members, cpus)
    return tuple(
        NUMANode(
            number,
            draft.members[number],
            draft.memory[number],
            draft.pages.get(number, {}),
            text,
            draft.cpulists.get(number),
            draft.access.get(number, ()),
        )
        for number, text in zip(order, texts, strict=True)
    )


def read_pages(path: PathTuple, counts: Mapping[str, int]) -> dict[int, int]:
    """Returns the number of huge pages by page size in KiB, in ascending order.

    Raises:
        ProfileError: a page size is invalid or a duplicate (``1Gi`` and ``1024Mi``).
    """
    pages = {}
    for text, count in counts.items():
        size = read((*path, text), parse_kilobytes, text)
        if size == 0 or size in pages:
            raise ProfileError((*path, text), "page size is zero or a duplicate")
        pages[size] = count
    return dict(sorted(pages.items()))


def _apply(
    row: NodeRow, path: PathTuple, draft: _Draft, cpus: Mapping[int, Cpu], budget: RowBudget
) -> None:
    numbers = read((*path, "nodes"), parse_list, str(row.nodes), MAX_NODES)
    for number, listed in zip(numbers, _row_cpus(row, path, len(numbers)), strict=True):
        if listed is not None:
            # The check uses a set of all CPUs, so its cost depends on their number.
            budget.spend((*path, "cpus"), max(len(listed), len(cpus) // 64))
            require_cpus((*path, "cpus"), listed, cpus)
            if not row.overlapping:
                _place((*path, "cpus"), number, listed, draft.node_of_cpu)
            draft.members[number] = tuple(sorted(listed))
        draft.members.setdefault(number, ())
        if row.memory is not None:
            if number in draft.memory:
                raise ProfileError((*path, "memory"), f"memory of node {number} is given twice")
            draft.memory[number] = (
                None
                if row.memory == "none"
                else read((*path, "memory"), parse_kilobytes, row.memory)
            )
        if row.hugepages is not None:
            pages = draft.pages.setdefault(number, {})
            pages.update(read_pages((*path, "hugepages"), row.hugepages))
        if row.cpulist is not None:
            named = read((*path, "cpulist"), parse_list, str(row.cpulist), MAX_CPUS)
            require_cpus((*path, "cpulist"), named, cpus)
            draft.cpulists[number] = tuple(sorted(named))
        if row.access:
            draft.access[number] = tuple(
                _access((*path, "access", i), one) for i, one in enumerate(row.access)
            )


def _access(path: PathTuple, access: Access) -> MemoryAccess:
    initiators = read((*path, "initiators"), parse_list, str(access.initiators), MAX_NODES)
    values = {name: getattr(access, name) for name in ACCESS_FILES}
    return MemoryAccess(
        initiators, {name: value for name, value in values.items() if value is not None}
    )


def _row_cpus(row: NodeRow, path: PathTuple, count: int) -> list[tuple[int, ...] | None]:
    if row.cpus is None:
        return [None] * count
    lists = row.cpus if isinstance(row.cpus, tuple) else (row.cpus,)
    if len(lists) != count:
        raise ProfileError((*path, "cpus"), f"got {len(lists)} CPU lists, expected {count}")
    return [read((*path, "cpus"), parse_list, str(text), MAX_CPUS) for text in lists]


def _place(path: PathTuple, node: int, cpus: tuple[int, ...], node_of_cpu: dict[int, int]) -> None:
    for cpu in cpus:
        first = node_of_cpu.setdefault(cpu, node)
        if first != node:
            fix = "remove it from one, or set `overlapping: true` if the machine reports both"
            raise ProfileError(path, f"CPU {cpu} is in two nodes, {first} and {node}", fix)


def _distances(
    profile: Profile,
    order: Sequence[int],
    members: Mapping[int, tuple[int, ...]],
    cpus: Mapping[int, Cpu],
) -> tuple[str, ...]:
    rule = profile.distances or DerivedDistances()
    if not isinstance(rule, DerivedDistances):
        if len(rule) != len(order):
            message = f"got {plural(len(rule), 'row')}, expected {len(order)}"
            raise ProfileError(("distances",), message)
        return rule
    return apply_distances(rule, [{cpus[cpu].socket for cpu in members[node]} for node in order])


def apply_distances(
    rule: DerivedDistances, sockets: Sequence[AbstractSet[int | None]]
) -> tuple[str, ...]:
    """Returns the text of each node's `distance`; `sockets` holds those of each node's CPUs."""
    return tuple(
        " ".join(
            str(rule.local if a == b else rule.near if sockets[a] & sockets[b] else rule.far)
            for b in range(len(sockets))
        )
        for a in range(len(sockets))
    )


_IDS = (*ID_FILES, "thread_group", "package_group", "capacity")
_SWITCHES = ("online", "topology", "cache")


def lay_out(profile: Profile) -> Machine:
    """Lays out the machine that a profile describes.

    Raises:
        ProfileError: the profile contradicts itself, refers to a CPU or node that does not exist,
            or exceeds Linux's limits.
    """
    cpus, node_cpus = lay_out_regular(profile.topology) if profile.topology else ({}, {})
    cpus = _apply_cpu_rows(profile, cpus)
    if not cpus:
        raise ProfileError(("cpus",), "the machine has no CPU", "add `topology` or `cpus`")
    nodes = lay_out_nodes(profile, cpus, node_cpus)
    ordered = tuple(cpus[number] for number in sorted(cpus))
    present = tuple(cpu.number for cpu in ordered)
    possible = present
    if profile.possible is not None:
        possible = read(("possible",), parse_list, str(profile.possible), MAX_CPUS)
        if not set(present) <= set(possible):
            raise ProfileError(("possible",), "must include all CPUs that are present")
    isolated, nohz_full = _set_at_boot(profile, cpus)
    memory = sum(node.memory or 0 for node in nodes)
    if profile.memory is not None:
        memory = read(("memory",), parse_kilobytes, profile.memory)
    elif not nodes:
        raise ProfileError((), "a machine without nodes needs `memory`", "add `memory: 8Gi`")
    hugepages: dict[int, int] = {}
    for node in nodes:
        for size, count in node.hugepages.items():
            hugepages[size] = hugepages.get(size, 0) + count
    if profile.hugepages is not None:
        hugepages = read_pages(("hugepages",), profile.hugepages)
    caches = lay_out_caches(profile.caches, ordered, nodes)
    return Machine(
        cpus=ordered,
        nodes=nodes,
        caches=caches,
        possible=tuple(sorted(possible)),
        surplus=_surplus(profile, possible),
        isolated=isolated,
        nohz_full=nohz_full,
        smt=profile.smt,
        possible_nodes=_possible_nodes(profile, nodes),
        kernel_max=profile.kernel_max,
        memory=memory,
        hugepages=hugepages,
    )


def _set_at_boot(
    profile: Profile, cpus: Mapping[int, Cpu]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the CPUs of the boot options `isolcpus` and `nohz_full`."""
    chosen = []
    for name in ("isolated", "nohz_full"):
        text = getattr(profile, name)
        numbers = () if text is None else read((name,), parse_list, str(text), MAX_CPUS)
        require_cpus((name,), numbers, cpus)
        chosen.append(tuple(sorted(numbers)))
    return chosen[0], chosen[1]


def _surplus(profile: Profile, possible: Sequence[int]) -> tuple[int, ...]:
    if profile.surplus is None:
        return ()
    surplus = read(("surplus",), parse_list, str(profile.surplus), MAX_CPUS)
    if not set(surplus).isdisjoint(possible):
        raise ProfileError(("surplus",), "must not include possible CPUs")
    return tuple(sorted(surplus))


def _possible_nodes(profile: Profile, nodes: Sequence[NUMANode]) -> tuple[int, ...]:
    present = tuple(node.number for node in nodes)
    if profile.possible_nodes is None:
        return present
    possible = read(("possible_nodes",), parse_list, str(profile.possible_nodes), MAX_NODES)
    if not set(present) <= set(possible):
        raise ProfileError(("possible_nodes",), "must include all nodes")
    return tuple(sorted(possible))


def lay_out_regular(topology: Topology) -> tuple[dict[int, Cpu], dict[int, tuple[int, ...]]]:
    """Returns a regular machine's CPUs by number, and the CPUs of each of its nodes.

    Raises:
        ProfileError: parts are unequal, there are too many CPUs, or the number of ids is wrong.
    """
    cores = topology.sockets * topology.cores_per_socket
    threads = topology.threads_per_core
    if cores * threads > MAX_CPUS:
        message = f"{cores * threads} CPUs exceed Linux's limit of {MAX_CPUS}"
        raise ProfileError(("topology",), message)
    _divides("nodes", topology.nodes, cores, "cores")
    _divides("dies_per_socket", topology.dies_per_socket, topology.cores_per_socket, "cores")
    core_ids = _core_ids(topology, cores)
    cluster_ids = _cluster_ids(topology, cores)
    sockets = (
        range(topology.sockets)
        if topology.socket_ids is None
        else spread(("topology", "socket_ids"), topology.socket_ids, topology.sockets, "sockets")
    )
    node_ids = _node_ids(topology)
    cpus: dict[int, Cpu] = {}
    members: dict[int, list[int]] = {node: [] for node in node_ids}
    for core in range(cores):
        socket, within = divmod(core, topology.cores_per_socket)
        dies = topology.dies_per_socket
        for thread in range(threads):
            number = cpu_number(topology, core, thread)
            cpus[number] = Cpu(
                number,
                socket=sockets[socket],
                die=within * dies // topology.cores_per_socket if dies else None,
                cluster=cluster_ids[core] if cluster_ids else None,
                core_id=core_ids[core % len(core_ids)],
            )
            if node_ids:
                members[node_ids[core * topology.nodes // cores]].append(number)
    return cpus, {node: tuple(sorted(numbers)) for node, numbers in members.items()}


def _divides(field: str, count: int, total: int, of: str) -> None:
    if count and total % count:
        fix = "use `cpus` and `nodes` rows for an irregular machine"
        message = f"{total} {of} cannot be divided evenly by {count}"
        raise ProfileError(("topology", field), message, fix)


def _core_ids(topology: Topology, cores: int) -> tuple[Value, ...]:
    if topology.core_ids is None:
        return tuple(range(topology.cores_per_socket))
    fix = "list the ids of one cluster, one die, one node, one socket, or of all cores"
    return _repeated_ids("core", topology.core_ids, cores, fix)


def _cluster_ids(topology: Topology, cores: int) -> tuple[Value, ...]:
    """Returns the cluster id of each core; empty if there are no clusters."""
    size = topology.cores_per_cluster
    if not size:
        return ()
    count = -(-cores // size)
    ids: tuple[Value, ...] = tuple(range(count))
    if topology.cluster_ids is not None:
        fix = "list the ids of one socket, or of all clusters"
        ids = _repeated_ids("cluster", topology.cluster_ids, count, fix)
    return tuple(ids[core // size % len(ids)] for core in range(cores))


def _repeated_ids(part: str, ids: str | int, count: int, fix: str) -> tuple[Value, ...]:
    path = ("topology", f"{part}_ids")
    values = read(path, parse_sequence, ids, MAX_CPUS)
    if len(values) > count or count % len(values):
        shares = f"{plural(count, part)} cannot share {plural(len(values), f'{part} id')} evenly"
        raise ProfileError(path, shares, fix)
    return values


def _node_ids(topology: Topology) -> tuple[int, ...]:
    if topology.node_ids is None:
        return tuple(range(topology.nodes))
    path = ("topology", "node_ids")
    ids = read(path, parse_list, str(topology.node_ids), MAX_NODES)
    if len(ids) != topology.nodes:
        raise ProfileError(path, f"expected {plural(topology.nodes, 'node id')}, got {len(ids)}")
    return ids


def cpu_number(topology: Topology, core: int, thread: int) -> int:
    """Returns the CPU number of a thread; `core` counts the cores of the whole machine."""
    cores = topology.sockets * topology.cores_per_socket
    threads = topology.threads_per_core
    match topology.numbering:
        case "cores-first":
            return thread * cores + core
        case "siblings-adjacent":
            return core * threads + thread
        case "socket-by-socket":
            socket, within = divmod(core, topology.cores_per_socket)
            return (socket * threads + thread) * topology.cores_per_socket + within
        case "sockets-interleaved":
            parts = topology.sockets
        case "nodes-interleaved":
            parts = max(topology.nodes, 1)
    part, within = divmod(core, cores // parts)
    return thread * cores + within * parts + part


def _apply_cpu_rows(profile: Profile, base: dict[int, Cpu]) -> dict[int, Cpu]:
    cpus = dict(base)
    said: dict[tuple[int, str], int] = {}
    budget = RowBudget(32)
    for i, row in enumerate(profile.cpus):
        path: PathTuple = ("cpus", i)
        numbers = read((*path, "cpus"), parse_list, str(row.cpus), MAX_CPUS)
        budget.spend((*path, "cpus"), len(numbers))
        if profile.topology is not None:
            require_cpus((*path, "cpus"), numbers, cpus)
        for name, values in _columns(row, path, numbers):
            for number, value in zip(numbers, values, strict=True):
                first = said.setdefault((number, name), i)
                if first != i:
                    raise _duplicate_value((*path, name), number, name, first)
                cpu = cpus.get(number) or Cpu(number, core_id=number)
                cpus[number] = replace(cpu, **{name: value})
        for number in numbers:
            cpus.setdefault(number, Cpu(number, core_id=number))
    return {number: _clear_offline(cpu, said) for number, cpu in cpus.items()}


def _columns(
    row: CpuRow, path: PathTuple, numbers: tuple[int, ...]
) -> Iterable[tuple[str, tuple[Any, ...]]]:
    for name in _IDS:
        text = getattr(row, name)
        if text is not None:
            yield name, spread((*path, name), text, len(numbers), "CPUs")
    for name in _SWITCHES:
        flag = getattr(row, name)
        if flag is not None:
            yield name, (flag,) * len(numbers)


def _duplicate_value(path: PathTuple, cpu: int, name: str, first: int) -> ProfileError:
    what = f"CPU {cpu} is in two cores" if name == "core_id" else f"CPU {cpu} has two values"
    return ProfileError(path, f"{what}: cpus[{first}] also sets `{name}`", "remove it from one")


def _clear_offline(cpu: Cpu, field_rows: Mapping[tuple[int, str], int]) -> Cpu:
    """Removes an offline CPU's topology and caches unless the profile sets them."""
    if cpu.online:
        return cpu
    return replace(
        cpu,
        topology=cpu.topology and (cpu.number, "topology") in field_rows,
        cache=cpu.cache and (cpu.number, "cache") in field_rows,
    )
