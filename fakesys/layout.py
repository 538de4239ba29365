"""Expands a profile into CPUs and nodes: first the regular form, then the rows."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from numaproof.fakesys.caches import lay_out_caches
from numaproof.fakesys.fields import RowBudget, read, require_cpus, spread
from numaproof.fakesys.machine import MAX_CPUS, MAX_NODES, Cpu, Machine, ProfileError
from numaproof.fakesys.numa import lay_out_nodes, read_pages
from numaproof.fakesys.profile import CpuRow, Profile, Topology
from numaproof.fakesys.ranges import Value, parse_list, parse_sequence
from numaproof.fakesys.sizes import parse_kilobytes
from numaproof.inputs.documents import PathTuple
from numaproof.inputs.plurals import plural

_IDS = (
    "socket",
    "die",
    "cluster",
    "core_id",
    "book",
    "drawer",
    "thread_group",
    "package_group",
    "capacity",
)
_SWITCHES = ("online", "topology", "cache")


def lay_out(profile: Profile) -> Machine:
    """The machine that a profile describes.

    Raises:
        ProfileError: the profile contradicts itself, refers to a CPU or node that does not exist,
            or is larger than Linux allows.
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
    isolated: tuple[int, ...] = ()
    if profile.isolated is not None:
        isolated = read(("isolated",), parse_list, str(profile.isolated), MAX_CPUS)
        require_cpus(("isolated",), isolated, cpus)
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
        isolated=tuple(sorted(isolated)),
        kernel_max=profile.kernel_max,
        memory=memory,
        hugepages=hugepages,
    )


def lay_out_regular(topology: Topology) -> tuple[dict[int, Cpu], dict[int, tuple[int, ...]]]:
    """The CPUs by number, and the CPUs of each node, of a regular machine.

    Raises:
        ProfileError: the parts are not equal, there are too many CPUs, or the ids do not match.
    """
    cores = topology.sockets * topology.cores_per_socket
    threads = topology.threads_per_core
    if cores * threads > MAX_CPUS:
        raise ProfileError(
            ("topology",), f"{cores * threads} CPUs exceed Linux's limit of {MAX_CPUS}"
        )
    _divides("nodes", topology.nodes, cores, "cores")
    _divides("dies_per_socket", topology.dies_per_socket, topology.cores_per_socket, "cores")
    core_ids = _core_ids(topology, cores)
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
        dies, cluster = topology.dies_per_socket, topology.cores_per_cluster
        for thread in range(threads):
            number = cpu_number(topology, core, thread)
            cpus[number] = Cpu(
                number,
                socket=sockets[socket],
                die=within * dies // topology.cores_per_socket if dies else None,
                cluster=core // cluster if cluster else None,
                core_id=core_ids[core % len(core_ids)],
            )
            if node_ids:
                members[node_ids[core * topology.nodes // cores]].append(number)
    return cpus, {node: tuple(sorted(numbers)) for node, numbers in members.items()}


def _divides(field: str, count: int, total: int, of: str) -> None:
    if count and total % count:
        raise ProfileError(
            ("topology", field),
            f"{total} {of} cannot be divided evenly by {count}",
            "use `cpus` and `nodes` rows for an irregular machine",
        )


def _core_ids(topology: Topology, cores: int) -> tuple[Value, ...]:
    if topology.core_ids is None:
        return tuple(range(topology.cores_per_socket))
    path = ("topology", "core_ids")
    values = read(path, parse_sequence, topology.core_ids, MAX_CPUS)
    if len(values) > cores or cores % len(values):
        raise ProfileError(
            path,
            f"{plural(cores, 'core')} cannot share {plural(len(values), 'core id')} evenly",
            "list the ids of one die, one node, one socket, or of all cores",
        )
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
    """The CPU number of a thread; `core` counts the cores of the whole machine."""
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
                    raise _said_twice((*path, name), number, name, first)
                cpu = cpus.get(number) or Cpu(number, core_id=number)
                cpus[number] = replace(cpu, **{name: value})
        for number in numbers:
            cpus.setdefault(number, Cpu(number, core_id=number))
    return {number: _settle(cpu, said) for number, cpu in cpus.items()}


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


def _said_twice(path: PathTuple, cpu: int, name: str, first: int) -> ProfileError:
    what = f"CPU {cpu} is in two cores" if name == "core_id" else f"CPU {cpu} has two values"
    return ProfileError(path, f"{what}: cpus[{first}] also sets `{name}`", "remove it from one")


def _settle(cpu: Cpu, said: Mapping[tuple[int, str], int]) -> Cpu:
    """An offline CPU has no topology and no caches, unless the profile says so."""
    if cpu.online:
        return cpu
    return replace(
        cpu,
        topology=cpu.topology and (cpu.number, "topology") in said,
        cache=cpu.cache and (cpu.number, "cache") in said,
    )
