"""Captures a live machine or a tree as an equivalent profile."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import msgspec

from numaproof.fakesys.archive import TreeError
from numaproof.fakesys.cache_rows import cache_rows
from numaproof.fakesys.entries import ACCESS_FILES, CPU, ID_FILES, KERNEL, NODE, SYSTEM
from numaproof.fakesys.fields import format_kilobytes
from numaproof.fakesys.layout import apply_distances, cpu_number, lay_out, lay_out_regular
from numaproof.fakesys.machine import MAX_CPUS, MAX_NODES, Cpu, Machine, ProfileError
from numaproof.fakesys.profile import (
    DEFAULT_KERNEL_MAX,
    MAX_KERNEL_MAX,
    MAX_SPEED,
    Access,
    Architecture,
    CpuInfo,
    CpuRow,
    DerivedDistances,
    NodeRow,
    Numbering,
    Profile,
    SMTControl,
    Topology,
)
from numaproof.fakesys.ranges import Value, format_list, format_sequence, parse_list
from numaproof.fakesys.snapshot import Root, Snapshot, meaning, mem_total, read_snapshot
from numaproof.fakesys.sys_files import NO_PART, smt_control
from numaproof.fakesys.tree import Tree, build_tree

Members = Mapping[int, tuple[int, ...]]


_NO_CLUSTERS: Mapping[str, Any] = {"cores_per_cluster": 0, "cluster_ids": None}


def find_topology(cpus: Sequence[Cpu], members: Members) -> Topology | None:
    """Finds a regular form that describes every CPU's socket, core and node; None if there is none.

    Dies and clusters are included if they are also regular; otherwise, rows must describe them.
    CPUs without a `topology` directory match anything.
    """
    if [cpu.number for cpu in cpus] != list(range(len(cpus))):
        return None
    with_cpus = {node: numbers for node, numbers in members.items() if numbers}
    known = [cpu for cpu in cpus if cpu.topology]
    sockets = len({cpu.socket for cpu in known})
    cores = len({cpu.core for cpu in known})
    parts = (sockets, max(len(with_cpus), 1))
    if not cores or any(cores % part for part in parts) or len(cpus) % cores:
        return None
    basis = Topology(
        sockets=sockets,
        cores_per_socket=cores // sockets,
        threads_per_core=len(cpus) // cores,
        nodes=len(with_cpus),
        dies_per_socket=_dies(known, sockets),
        cores_per_cluster=_cores_per_cluster(known, cores),
    )
    if with_cpus and list(with_cpus) != list(range(len(with_cpus))):
        basis = msgspec.structs.replace(basis, node_ids=format_list(with_cpus))
    numbered = [
        _with_ids(msgspec.structs.replace(basis, numbering=numbering), cpus)
        for numbering in get_args(Numbering)
    ]
    omissions: tuple[Mapping[str, Any], ...] = (
        {},
        _NO_CLUSTERS,
        {**_NO_CLUSTERS, "dies_per_socket": 0},
    )
    attempts = (msgspec.structs.replace(one, **less) for less in omissions for one in numbered)
    return next((attempt for attempt in attempts if _fits(attempt, cpus, with_cpus)), None)


def _dies(cpus: Sequence[Cpu], sockets: int) -> int:
    dies = {(cpu.socket, cpu.die) for cpu in cpus if cpu.die is not None}
    return len(dies) // sockets


def _cores_per_cluster(cpus: Sequence[Cpu], cores: int) -> int:
    clusters = {(cpu.socket, cpu.cluster) for cpu in cpus if cpu.cluster is not None}
    if {cluster for _, cluster in clusters} == {NO_PART}:
        return 1
    return cores // len(clusters) if clusters else 0


def _with_ids(topology: Topology, cpus: Sequence[Cpu]) -> Topology:
    """Adds the ids of the first thread of each core to the topology."""
    cores = topology.sockets * topology.cores_per_socket
    first = [cpus[cpu_number(topology, core, 0)] for core in range(cores)]
    core_ids = _period([cpu.core_id for cpu in first])
    sockets = [cpu.socket for cpu in first[:: topology.cores_per_socket]]
    usual = list(range(topology.cores_per_socket))
    clusters = [cpu.cluster for cpu in first[:: topology.cores_per_cluster or cores]]
    return msgspec.structs.replace(
        topology,
        core_ids=None if core_ids == usual else format_sequence(core_ids),
        cluster_ids=(
            format_sequence(_period(clusters))
            if topology.cores_per_cluster and clusters != list(range(len(clusters)))
            else None
        ),
        socket_ids=(None if sockets == list(range(topology.sockets)) else format_sequence(sockets)),
    )


def _period(values: list[Value]) -> list[Value]:
    for length in range(1, len(values)):
        if len(values) % length == 0 and values == values[:length] * (len(values) // length):
            return values[:length]
    return values


def _fits(topology: Topology, cpus: Sequence[Cpu], members: Members) -> bool:
    try:
        wanted, nodes = lay_out_regular(topology)
    except ProfileError:
        return False
    if nodes != members:
        return False
    return all(
        (cpu.socket, cpu.core_id) == (wanted[cpu.number].socket, wanted[cpu.number].core_id)
        and (not topology.dies_per_socket or cpu.die == wanted[cpu.number].die)
        and (not topology.cores_per_cluster or cpu.cluster == wanted[cpu.number].cluster)
        for cpu in cpus
        if cpu.topology
    )


def capture(root: Root, name: str, *, title: str = "", source: str = "") -> Profile:
    """Captures the profile of the machine below a root.

    A tree built from the profile contains everything that discovery reads from the original, and
    the siblings, masks and lists that lscpu and hwloc read.

    Args:
        root: a directory with `sys` and `proc` (``/`` for this machine), or a tree's `TreePath`.
        name: the profile's name: lower-case letters, digits, ``.``, ``_``, ``+``, ``-``.
        title: a one-line description (default: the shape of the machine).
        source: the kind of machine, and where the data comes from.

    Raises:
        TreeError: there are no CPUs below the root, or the name is invalid.
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
        possible=_possible(snapshot, CPU, snapshot.cpus, MAX_CPUS),
        surplus=_surplus(snapshot),
        isolated=_set_at_boot(snapshot, "isolated"),
        nohz_full=_set_at_boot(snapshot, "nohz_full"),
        kernel_max=_kernel_max(snapshot),
        nodes=_node_rows(snapshot, topology, {cpu.number for cpu in cpus if cpu.online}),
        possible_nodes=_possible(snapshot, NODE, snapshot.members, MAX_NODES),
        memory=format_kilobytes(mem_total(snapshot.text("proc/meminfo") or "") or 0),
        hugepages={
            format_kilobytes(size): n for size, n in snapshot.hugepages(f"{KERNEL}/mm").items()
        },
        cpuinfo=info,
    )
    profile = _without_what_follows(profile)
    profile = msgspec.structs.replace(
        profile, distances=_distances(snapshot, profile), smt=_smt(snapshot, profile)
    )
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
        ids = {name: snapshot.number(f"{base}/topology/{file}") for name, file in ID_FILES.items()}
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
    """Returns a row with the ids of all CPUs, and rows for CPUs that are offline or lack files."""
    columns: dict[str, Any] = {
        name: values[0] if len(set(values)) == 1 else format_sequence(values)
        for name, values in _columns(cpus, topology)
    }
    rows = []
    if columns or topology is None:
        every = _format_numbers([cpu.number for cpu in cpus])
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
        CpuRow(cpus=_format_numbers(numbers), online=online, topology=topology_, cache=cache)
        for (online, topology_, cache), numbers in states.items()
        if (online, topology_, cache) != (None, None, None)
    ]
    return tuple(rows)


def _columns(cpus: Sequence[Cpu], topology: Topology | None) -> Iterator[tuple[str, list[Value]]]:
    """Yields the ids that need rows because they are neither regular nor the default."""
    regular = {"socket", "core_id"} if topology else set()
    if topology and topology.dies_per_socket:
        regular.add("die")
    if topology and topology.cores_per_cluster:
        regular.add("cluster")
    numbers = [cpu.number for cpu in cpus]
    for name in (*ID_FILES, "thread_group", "package_group", "capacity"):
        values = [getattr(cpu, name) for cpu in cpus]
        usual = {"core_id": numbers, "socket": [0] * len(cpus)}.get(name, [None] * len(cpus))
        if name not in regular and values != usual:
            yield name, values


def _node_rows(
    snapshot: Snapshot, topology: Topology | None, online: set[int]
) -> tuple[NodeRow, ...]:
    rows: dict[tuple[Any, ...], list[int]] = {}
    placed: set[int] = set()
    for node, cpus in snapshot.members.items():
        base = f"{NODE}/node{node}"
        total = mem_total(snapshot.text(f"{base}/meminfo") or "")
        pages = tuple(snapshot.hugepages(base).items())
        overlap = bool(placed.intersection(cpus))
        placed.update(cpus)
        listed = _cpulist(snapshot, node, online.intersection(cpus))
        access = _access(snapshot, node)
        rows.setdefault((total, pages, overlap, bool(cpus), listed, access), []).append(node)
    return tuple(
        NodeRow(
            nodes=_format_numbers(nodes),
            cpus=_members(snapshot.members, nodes) if topology is None and populated else None,
            memory="none" if total is None else format_kilobytes(total),
            hugepages={format_kilobytes(size): count for size, count in pages} or None,
            overlapping=overlap,
            cpulist=listed,
            access=access,
        )
        for (total, pages, overlap, populated, listed, access), nodes in rows.items()
    )


def _cpulist(snapshot: Snapshot, node: int, online: set[int]) -> str | int | None:
    """Returns the CPUs of a node's `cpulist`, or None if these are its online CPUs."""
    listed = set(snapshot.cpu_set(f"{NODE}/node{node}/cpulist") or ())
    if not listed or listed == online or not listed <= set(snapshot.cpus):
        return None
    return _format_numbers(sorted(listed))


def _access(snapshot: Snapshot, node: int) -> tuple[Access, ...]:
    found = []
    for number, access in enumerate(sorted(n for owner, n in snapshot.initiators if owner == node)):
        initiators = snapshot.initiators[node, access]
        if access != number or not set(initiators) <= set(snapshot.members):
            break
        base = f"{NODE}/node{node}/access{access}/initiators"
        numbers = {name: snapshot.number(f"{base}/{name}") for name in ACCESS_FILES}
        speeds = {
            name: number for name, number in numbers.items() if 0 < (number or 0) <= MAX_SPEED
        }
        found.append(Access(initiators=_format_numbers(initiators), **speeds))
    return tuple(found)


def _members(
    members: Mapping[int, tuple[int, ...]], nodes: Sequence[int]
) -> str | int | tuple[str | int, ...]:
    lists = tuple(_format_numbers(members[node]) for node in nodes)
    return lists[0] if len(lists) == 1 else lists


def _format_numbers(numbers: Sequence[int]) -> str | int:
    return numbers[0] if len(numbers) == 1 else format_list(numbers)


def _possible(snapshot: Snapshot, folder: str, present: Collection[int], limit: int) -> str | None:
    """Returns the list of possible CPUs or nodes, or None if these are present or too large."""
    possible = set(snapshot.cpu_set(f"{folder}/possible") or ())
    fits = possible > set(present) and max(possible) < limit
    return format_list(possible) if fits else None


def _surplus(snapshot: Snapshot) -> str | None:
    """Returns the list of CPUs in `offline` that aren't possible, or None if there are none."""
    possible = snapshot.cpu_set(f"{CPU}/possible") or snapshot.cpus
    try:
        offline = parse_list((snapshot.text(f"{CPU}/offline") or "").lstrip(","), MAX_CPUS)
    except ValueError:
        return None
    return format_list(set(offline) - set(possible)) or None


def _set_at_boot(snapshot: Snapshot, name: str) -> str | None:
    """Returns a list of CPUs, or None if it is empty or names CPUs that do not exist."""
    cpus = snapshot.cpu_set(f"{CPU}/{name}")
    return format_list(cpus) if cpus and set(cpus) <= set(snapshot.cpus) else None


def _smt(snapshot: Snapshot, profile: Profile) -> Any:
    """Returns the text of `smt/control`, or None if it follows from the CPUs."""
    text = snapshot.text(f"{CPU}/smt/control")
    default = smt_control(lay_out(profile), profile.architecture)
    return text if text in get_args(SMTControl) and text != default else None


def _kernel_max(snapshot: Snapshot) -> int:
    """Returns the number in `kernel_max`, or the default for profiles."""
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
    """Removes the machine's memory and huge pages if they equal the sums over its nodes."""
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
    """Returns a rule for the distances, or their text if no rule fits."""
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
    cores = len({cpu.threads for cpu in machine.cpus if cpu.topology})
    parts = [(sockets, "socket"), (cores, "core"), (len(machine.cpus), "CPU")]
    parts.append((len(machine.nodes), "NUMA node"))
    return ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in parts)


def with_groups(snapshot: Snapshot, cpus: Sequence[Cpu]) -> tuple[Cpu, ...]:
    """Adds sibling groups to CPUs if the files group them differently than the ids do.

    Contradictory sibling lists form no groups; the profile's `files` keep them.
    """
    threads = _groups(snapshot, cpus, "thread_siblings", lambda cpu: cpu.core)
    packages = _groups(snapshot, cpus, "core_siblings", lambda cpu: (cpu.socket,))
    return tuple(
        replace(
            cpu,
            thread_group=threads.get(cpu.number),
            package_group=packages.get(cpu.number),
        )
        for cpu in cpus
    )


def _groups(
    snapshot: Snapshot, cpus: Sequence[Cpu], name: str, key: Callable[[Cpu], object]
) -> Mapping[int, int]:
    """Maps each CPU to the first CPU of its group; empty if the groups follow from the key."""
    sets: dict[int, tuple[int, ...]] = {}
    follows: dict[object, list[int]] = {}
    for cpu in cpus:
        found = snapshot.cpu_set(f"{CPU}/cpu{cpu.number}/topology/{name}")
        if found is not None:
            sets[cpu.number] = found
        if cpu.topology:
            follows.setdefault(key(cpu), []).append(cpu.number)
    wanted = {number: tuple(group) for group in follows.values() for number in group}
    # Checks each set only once, because thousands of CPUs can have the same.
    consistent = all(number in group for number, group in sets.items()) and all(
        sets.get(other) == group for group in set(sets.values()) for other in group
    )
    if not consistent or all(wanted.get(number) == group for number, group in sets.items()):
        return {}
    return {number: group[0] for number, group in sets.items()}


_NUMBERED = re.compile(r"(?<=/)(cpu|index|node)(\d+)(?=/)")
# Files that trees have, but profiles needn't describe: many kernels and many copies lack them.
_OPTIONAL = re.compile(
    r"^proc/stat$|/(?:free|surplus|resv|nr_overcommit)_hugepages$|_mempolicy$"
    r"|/smt/|/physical_line_partition$|/has_generic_initiator$"
)


@dataclass(frozen=True, slots=True)
class Residue:
    """A profile's `lacks`, `files` and `trailing_nul`."""

    lacks: tuple[str, ...]
    files: Mapping[str, str]
    trailing_nul: tuple[str, ...]


def find_residue(snapshot: Snapshot, tree: Tree) -> Residue:
    known = {path: entry for path, entry in tree.items() if isinstance(entry, bytes)}
    missing = {path for path in known if not _OPTIONAL.search(path)} - snapshot.files.keys()
    odd = {
        path: content.rstrip(b"\0").decode("utf-8", "replace").removesuffix("\n")
        for path, content in snapshot.files.items()
        if path not in known or meaning(path, content) != meaning(path, known[path])
    }
    ending = [path for path, content in snapshot.files.items() if content.endswith(b"\0")]
    return Residue(
        tuple(_compress(missing, known)),
        _compress_files(odd),
        tuple(_compress(ending, snapshot.files)),
    )


def _compress(paths: Iterable[str], among: Iterable[str]) -> list[str]:
    """Returns patterns that match these paths and nothing else in `among`."""
    chosen, everything = _by_form(paths), _by_form(among)
    patterns = []
    for form, numbers in sorted(chosen.items()):
        if numbers == everything[form]:
            patterns.append(_spell(form, ["*"] * form.count("#")))
            continue
        for rest in sorted({number[1:] for number in numbers}):
            firsts = {number[0] for number in numbers if number[1:] == rest}
            every = {number[0] for number in everything[form] if number[1:] == rest}
            first = "*" if firsts == every else f"{{{format_list(firsts)}}}"
            patterns.append(_spell(form, [first, *map(str, rest)]))
    return patterns


def _compress_files(contents: Mapping[str, str]) -> dict[str, str]:
    groups: dict[tuple[str, tuple[int, ...], str], set[int]] = {}
    whole: dict[str, str] = {}
    for path, content in contents.items():
        form, numbers = _split(path)
        if numbers:
            groups.setdefault((form, numbers[1:], content), set()).add(numbers[0])
        else:
            whole[_spell(form, [])] = content
    for (form, rest, content), firsts in sorted(groups.items(), key=lambda item: min(item[1])):
        first = format_list(firsts)
        text = first if len(firsts) == 1 else f"{{{first}}}"
        whole[_spell(form, [text, *map(str, rest)])] = content
    return whole


def _by_form(paths: Iterable[str]) -> dict[str, set[tuple[int, ...]]]:
    forms: dict[str, set[tuple[int, ...]]] = {}
    for path in paths:
        form, numbers = _split(path)
        forms.setdefault(form, set()).add(numbers)
    return forms


def _split(path: str) -> tuple[str, tuple[int, ...]]:
    """Splits a path into a form with ``#`` (``cpu/cpu#/topology/core_id``) and its numbers."""
    numbers = tuple(int(match[2]) for match in _NUMBERED.finditer(path))
    return _NUMBERED.sub(r"\1#", path).removeprefix(f"{SYSTEM}/"), numbers


def _spell(form: str, parts: list[str]) -> str:
    pieces = form.split("#")
    return "".join(piece + part for piece, part in zip(pieces, [*parts, ""], strict=True))


_SIGNS: tuple[tuple[str, Architecture], ...] = (
    (r"(?m)^vendor_id\s*: IBM/S390", "s390x"),
    (r"(?m)^arch\s*: IA-64", "ia64"),
    (r"(?m)^(timebase|cpu\s*: (POWER|Cell|PPC))", "ppc64"),
    (r"(?m)^model name\s*: ARMv[0-7]|^CPU architecture\s*: [0-7]$", "arm"),
    (r"(?m)^CPU implementer\s*:", "arm64"),
    (r"(?m)^hart\s*:", "riscv64"),
    (r"(?m)^flags\s*:.* lm( |$)", "x86_64"),
    (r"(?m)^flags\s*:", "i386"),
)
_ARM_FIELDS = ("CPU implementer", "CPU variant", "CPU part", "CPU revision")
_SHOWS_IDS = ("x86_64", "i386", "ia64", "s390x")


def cpuinfo_of(snapshot: Snapshot, cpus: Sequence[Cpu]) -> tuple[Architecture, CpuInfo]:
    """Returns the architecture (x86_64 if unknown) and the contents of `/proc/cpuinfo`."""
    text = snapshot.text("proc/cpuinfo") or ""
    architecture: Architecture = next(
        (name for sign, name in _SIGNS if re.search(sign, text)), "x86_64"
    )
    by_number = {cpu.number: cpu for cpu in cpus}
    processors = snapshot.processors
    numbers = [p.number for p in processors if p.number is not None]
    if len(set(numbers)) != len(processors):
        # This is not a list of processors, so the profile must keep the file's text.
        return architecture, CpuInfo()
    shown = [by_number.get(number, Cpu(number, None)) for number in sorted(numbers)]
    order = {p.number: p for p in processors}
    core_ids = [order[cpu.number].core_id for cpu in shown]
    physical_ids = [order[cpu.number].physical_id for cpu in shown]
    ids = architecture in _SHOWS_IDS
    online = [cpu.number for cpu in cpus if cpu.online]
    return architecture, CpuInfo(
        vendor=_field(text, "vendor_id") or _field(text, "vendor"),
        model=_field(text, "model name") or _field(text, "cpu"),
        fields={key: value for key in _ARM_FIELDS if (value := _field(text, key))},
        cpus=None if sorted(numbers) == online else format_list(numbers),
        core_ids=_format_override(core_ids, [cpu.core_id for cpu in shown]) if ids else None,
        physical_ids=_format_override(physical_ids, [cpu.socket for cpu in shown]) if ids else None,
    )


def _field(text: str, key: str) -> str | None:
    match = re.search(rf"(?m)^{re.escape(key)}[ \t]*:[ \t]*(\S[^\n\0]{{0,200}}?)[ \t]*$", text)
    return match[1] if match else None


def _format_override(values: Sequence[Value], sysfs: Sequence[Value]) -> str | None:
    """Formats the ids, or returns None if they equal those in sysfs."""
    # The file cannot show negative ids; they are read as missing.
    if list(values) == [None if value is None or value < 0 else value for value in sysfs]:
        return None
    return "none" if set(values) == {None} else format_sequence(values)
