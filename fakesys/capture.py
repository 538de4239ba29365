"""Captures a live machine or a tree as an equivalent profile."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from numaproof.fakesys.cache_rows import cache_rows
from numaproof.fakesys.entries import CPU, KERNEL, NODE
from numaproof.fakesys.layout import lay_out
from numaproof.fakesys.machine import Cpu, Machine
from numaproof.fakesys.members import TreeError
from numaproof.fakesys.numa import apply_distances
from numaproof.fakesys.processors import cpuinfo_of
from numaproof.fakesys.profile import (
    DEFAULT_KERNEL_MAX,
    MAX_KERNEL_MAX,
    CpuRow,
    DerivedDistances,
    NodeRow,
    Profile,
    Topology,
)
from numaproof.fakesys.ranges import Value, format_list, format_sequence
from numaproof.fakesys.regular import find_topology
from numaproof.fakesys.residue import find_residue
from numaproof.fakesys.siblings import with_groups
from numaproof.fakesys.sizes import format_kilobytes
from numaproof.fakesys.snapshot import Root, Snapshot, mem_total, read_snapshot
from numaproof.fakesys.tree import build_tree

_FILES = {
    "socket": "physical_package_id",
    "die": "die_id",
    "cluster": "cluster_id",
    "core_id": "core_id",
    "book": "book_id",
    "drawer": "drawer_id",
}


def capture(root: Root, name: str, *, title: str = "", source: str = "") -> Profile:
    """The profile of the machine below a root.

    The tree built from it has every fact of the original that discovery reads, and the siblings,
    masks and lists that lscpu and hwloc read.

    Args:
        root: directory with `sys` and `proc` (``/`` for this machine), or the `TreePath` of a tree.
        name: the profile's name: lower-case letters, digits, ``.``, ``_``, ``+``, ``-``.
        title: one line for people (default: the shape of the machine).
        source: what the machine is and where the data comes from.

    Raises:
        TreeError: there is no CPU below the root, or the name is invalid.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._+-]{0,99}", name):
        raise TreeError(f"invalid profile name {name!r}; use lower-case letters, digits and -")
    snapshot = read_snapshot(root)
    cpus = _cpus(snapshot)
    topology = find_topology(cpus, snapshot.members)
    architecture, info = cpuinfo_of(snapshot, cpus)
    profile = Profile(
        name=name,
        title=title or "captured",
        source=source or "Captured from a tree.",
        architecture=architecture,
        sysfs=_sysfs(snapshot),
        topology=topology,
        cpus=_cpu_rows(cpus, topology, any_cache=any(cpu.cache for cpu in cpus)),
        possible=_possible(snapshot),
        isolated=_isolated(snapshot),
        kernel_max=_kernel_max(snapshot),
        nodes=_node_rows(snapshot, topology),
        memory=format_kilobytes(mem_total(snapshot.text("proc/meminfo") or "") or 0),
        hugepages={_page(size): n for size, n in snapshot.hugepages(f"{KERNEL}/mm").items()},
        cpuinfo=info,
    )
    profile = _without_what_follows(profile)
    profile = msgspec.structs.replace(profile, distances=_distances(snapshot, profile))
    machine = lay_out(profile)
    caches = cache_rows(snapshot, machine.cpus, machine.nodes)
    profile = msgspec.structs.replace(profile, caches=caches)
    residue = find_residue(snapshot, build_tree(profile))
    return msgspec.structs.replace(
        profile,
        title=title or _shape(machine),
        lacks=residue.lacks,
        files=residue.files,
        trailing_nul=residue.trailing_nul,
    )


def _cpus(snapshot: Snapshot) -> tuple[Cpu, ...]:
    online = snapshot.cpu_set(f"{CPU}/online")
    directories = {tuple(path.split("/")[4:6]) for path in snapshot.files if path.startswith(CPU)}
    cpus = []
    for number in snapshot.cpus:
        base = f"{CPU}/cpu{number}"
        ids = {name: snapshot.number(f"{base}/topology/{file}") for name, file in _FILES.items()}
        cpus.append(
            Cpu(
                number,
                **ids,
                capacity=snapshot.number(f"{base}/cpu_capacity"),
                online=(
                    snapshot.text(f"{base}/online") != "0" if online is None else number in online
                ),
                topology=(f"cpu{number}", "topology") in directories,
                cache=(f"cpu{number}", "cache") in directories,
            )
        )
    return with_groups(snapshot, cpus)


def _cpu_rows(
    cpus: Sequence[Cpu], topology: Topology | None, *, any_cache: bool
) -> tuple[CpuRow, ...]:
    """One row with the ids of all CPUs, then rows for CPUs that are offline or lack files."""
    columns: dict[str, Any] = {
        name: values[0] if len(set(values)) == 1 else format_sequence(values)
        for name, values in _columns(cpus, topology)
    }
    rows = []
    if columns or topology is None:
        every = _listed([cpu.number for cpu in cpus])
        spoken: dict[str, Any] = {
            name: "none" if value is None else value for name, value in columns.items()
        }
        rows.append(CpuRow(cpus=every, **spoken))
    states: dict[tuple[bool | None, ...], list[int]] = {}
    for cpu in cpus:
        state = (
            None if cpu.online else False,
            None if cpu.topology == cpu.online else cpu.topology,
            None if cpu.cache == cpu.online or not any_cache else cpu.cache,
        )
        states.setdefault(state, []).append(cpu.number)
    rows += [
        CpuRow(cpus=_listed(numbers), online=online, topology=topology_, cache=cache)
        for (online, topology_, cache), numbers in states.items()
        if (online, topology_, cache) != (None, None, None)
    ]
    return tuple(rows)


def _columns(cpus: Sequence[Cpu], topology: Topology | None) -> Iterator[tuple[str, list[Value]]]:
    """The ids that rows must state: those that are neither regular nor the default."""
    regular = {"socket", "core_id"} if topology else set()
    if topology and topology.dies_per_socket:
        regular.add("die")
    if topology and topology.cores_per_cluster:
        regular.add("cluster")
    numbers = [cpu.number for cpu in cpus]
    for name in (*_FILES, "thread_group", "package_group", "capacity"):
        values = [getattr(cpu, name) for cpu in cpus]
        usual = {"core_id": numbers, "socket": [0] * len(cpus)}.get(name, [None] * len(cpus))
        if name not in regular and values != usual:
            yield name, values


def _node_rows(snapshot: Snapshot, topology: Topology | None) -> tuple[NodeRow, ...]:
    """One row for each set of nodes with the same content."""
    rows: dict[tuple[Any, ...], list[int]] = {}
    placed: set[int] = set()
    overlapping: dict[int, bool] = {}
    for node, cpus in snapshot.members.items():
        base = f"{NODE}/node{node}"
        total = mem_total(snapshot.text(f"{base}/meminfo") or "")
        pages = tuple(snapshot.hugepages(base).items())
        overlapping[node] = bool(placed.intersection(cpus))
        placed.update(cpus)
        rows.setdefault((total, pages, overlapping[node], bool(cpus)), []).append(node)
    return tuple(
        NodeRow(
            nodes=_listed(nodes),
            cpus=_members(snapshot.members, nodes) if topology is None and populated else None,
            memory="none" if total is None else format_kilobytes(total),
            hugepages={_page(size): count for size, count in pages} or None,
            overlapping=overlap,
        )
        for (total, pages, overlap, populated), nodes in rows.items()
    )


def _members(
    members: Mapping[int, tuple[int, ...]], nodes: Sequence[int]
) -> str | int | tuple[str | int, ...]:
    lists = tuple(_listed(members[node]) for node in nodes)
    return lists[0] if len(lists) == 1 else lists


def _listed(numbers: Sequence[int]) -> str | int:
    return numbers[0] if len(numbers) == 1 else format_list(numbers)


def _page(size: int) -> str:
    return format_kilobytes(size)


def _possible(snapshot: Snapshot) -> str | None:
    possible = snapshot.cpu_set(f"{CPU}/possible")
    if possible is None or possible == snapshot.cpus or not set(snapshot.cpus) <= set(possible):
        return None
    return format_list(possible)


def _isolated(snapshot: Snapshot) -> str | None:
    """The isolated CPUs if there are any, and all of them exist."""
    isolated = snapshot.cpu_set(f"{CPU}/isolated")
    return format_list(isolated) if isolated and set(isolated) <= set(snapshot.cpus) else None


def _kernel_max(snapshot: Snapshot) -> int:
    """The number in `kernel_max`, or what a profile has if it says none."""
    found = snapshot.number(f"{CPU}/kernel_max")
    return found if found is not None and 0 <= found <= MAX_KERNEL_MAX else DEFAULT_KERNEL_MAX


def _sysfs(snapshot: Snapshot) -> Any:
    names = {path.rpartition("/")[2] for path in snapshot.files if path.startswith(f"{CPU}/cpu")}
    if names & {"core_cpus", "package_cpus", "core_cpus_list", "package_cpus_list"}:
        return "full"
    if not names & {"thread_siblings", "core_siblings", "shared_cpu_map"}:
        newest = {f"{CPU}/isolated": "full", f"{CPU}/kernel_max": "lists"}
        return next((form for path, form in newest.items() if path in snapshot.files), "masks")
    return "lists" if any(name.endswith("_list") for name in names) else "masks"


def _without_what_follows(profile: Profile) -> Profile:
    """The profile without the machine's memory and pages if they are the sums over its nodes."""
    plain = msgspec.structs.replace(profile, memory=None, hugepages=None)
    if profile.nodes:
        found, sums = lay_out(profile), lay_out(plain)
        return msgspec.structs.replace(
            profile,
            memory=None if found.memory == sums.memory else profile.memory,
            hugepages=None if found.hugepages == sums.hugepages else profile.hugepages,
        )
    return profile if profile.hugepages else msgspec.structs.replace(profile, hugepages=None)


def _distances(snapshot: Snapshot, profile: Profile) -> DerivedDistances | tuple[str, ...] | None:
    """The rule that yields the distances, or their text if there is none."""
    rows = tuple(
        " ".join((snapshot.text(f"{NODE}/node{node}/distance") or "").split())
        for node in snapshot.members
    )
    if not any(rows):
        return None
    values = {int(value) for row in rows for value in re.findall(r"\b\d{1,3}\b", row)}
    small = sorted(value for value in values if value <= 255)  # noqa: PLR2004 - one byte each
    machine = lay_out(profile)
    sockets = [{machine.by_number[cpu].socket for cpu in node.cpus} for node in machine.nodes]
    for near in (12, *small):
        for far in (20, *small):
            rule = DerivedDistances(local=small[0] if small else 10, near=near, far=far)
            if apply_distances(rule, sockets) == rows:
                return None if rule == DerivedDistances() else rule
    return rows


def _shape(machine: Machine) -> str:
    sockets = len({cpu.socket for cpu in machine.cpus if cpu.topology})
    cores = len({cpu.core for cpu in machine.cpus if cpu.topology})
    parts = [(sockets, "socket"), (cores, "core"), (len(machine.cpus), "CPU")]
    parts.append((len(machine.nodes), "NUMA node"))
    return ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in parts)
