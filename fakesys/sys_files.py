"""`/sys/devices/system`: CPUs, NUMA nodes and huge pages (Linux, Documentation/ABI)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from numaproof.fakesys.entries import CACHE_FILES, CPU, ID_FILES, KERNEL, NODE, Entry, Symlink, line
from numaproof.fakesys.machine import CacheKind, Cpu, Machine, NUMANode, Sysfs
from numaproof.fakesys.meminfo import node_meminfo
from numaproof.fakesys.ranges import format_list, format_mask

# The files for each size of the machine's huge pages, in addition to their number.
_POOL = ("nr_overcommit_hugepages", "resv_hugepages", "surplus_hugepages")

_PC = ("x86_64", "i386")

# The largest id of 16 bits: the kernel found no cluster.
NO_PART = 65535

# The kernel's largest CPU number if it allocates its CPU sets when they are needed.
_LARGE_SET = 511

# The files with sets of siblings as masks; the corresponding lists end in `_list`.
_THREADS = {"full": ("thread_siblings", "core_cpus"), "lists": ("thread_siblings",)}
_PACKAGE = {"full": ("core_siblings", "package_cpus"), "lists": ("core_siblings",)}


def cpu_files(machine: Machine, architecture: str, sysfs: Sysfs) -> dict[str, Entry]:
    """Returns all files and links below `cpu`, by path."""
    present = [cpu.number for cpu in machine.cpus]
    online = [cpu.number for cpu in machine.cpus if cpu.online]
    offline = sorted(set(machine.possible) - set(online))
    files: dict[str, Entry] = {
        f"{CPU}/possible": line(format_list(machine.possible)),
        f"{CPU}/present": line(format_list(present)),
        f"{CPU}/online": line(format_list(online)),
        f"{CPU}/offline": line(_offline(machine, offline)),
    }
    width = machine.possible[-1] + 1
    if sysfs != "masks":
        files[f"{CPU}/kernel_max"] = line(machine.kernel_max)
        files.update(_node_links(machine))
    if sysfs == "full" or machine.isolated:
        files[f"{CPU}/isolated"] = line(format_list(machine.isolated))
    if sysfs == "full":
        files[f"{CPU}/nohz_full"] = line(_without_tick(machine, width))
        files[f"{CPU}/smt/active"] = line(int(_has_siblings(machine)))
        files[f"{CPU}/smt/control"] = line(smt_control(machine, architecture))
    fixed = _cannot_go_offline(architecture, sysfs)
    for cpu in machine.cpus:
        if cpu.number or not cpu.online or not fixed:
            files[f"{CPU}/cpu{cpu.number}/online"] = line(int(cpu.online))
        if cpu.capacity is not None:
            files[f"{CPU}/cpu{cpu.number}/cpu_capacity"] = line(cpu.capacity)
    files.update(_topology(machine, sysfs, width))
    files.update(_caches(machine, architecture, sysfs, width))
    return files


def _offline(machine: Machine, offline: list[int]) -> str:
    """Returns the text of `offline`; the kernel appends CPUs that it doesn't use after a comma."""
    surplus = machine.surplus and f",{format_list(machine.surplus)}"
    return format_list(offline) + (surplus or "")


def _without_tick(machine: Machine, width: int) -> str:
    """Returns the text of `nohz_full`.

    Without the boot option, kernels that allocate large CPU sets print a null pointer, as wide as
    a set; the others print an empty list.
    """
    if machine.nohz_full or machine.kernel_max < _LARGE_SET:
        return format_list(machine.nohz_full)
    return f"{'(null)':>{width}}"


def smt_control(machine: Machine, architecture: str) -> str:
    """Returns the text of `smt/control`."""
    if machine.smt is not None:
        return machine.smt
    if architecture not in _PC:
        return "notimplemented"
    return "on" if _has_siblings(machine) else "notsupported"


def _has_siblings(machine: Machine) -> bool:
    """Whether a core has several online threads."""
    online = Counter(cpu.threads for cpu in machine.cpus if cpu.online)
    return max(online.values(), default=0) > 1


def _cannot_go_offline(architecture: str, sysfs: Sysfs) -> bool:
    """Whether CPU 0 cannot go offline, as on PCs, 32-bit Arm, and mainframes with newer kernels."""
    return architecture in (*_PC, "arm") or (architecture == "s390x" and sysfs == "full")


def _node_links(machine: Machine) -> Iterator[tuple[str, Entry]]:
    for node in machine.nodes:
        for cpu in node.cpus:
            yield f"{CPU}/cpu{cpu}/node{node.number}", Symlink(f"../../node/node{node.number}")


def _topology(machine: Machine, sysfs: Sysfs, width: int) -> Iterator[tuple[str, Entry]]:
    listed = [cpu for cpu in machine.cpus if cpu.topology]
    siblings = [
        (_THREADS.get(sysfs, ("thread_siblings",)), _sets(listed, lambda cpu: cpu.threads)),
        (_PACKAGE.get(sysfs, ("core_siblings",)), _sets(listed, _package_group)),
        (("die_cpus",), _sets(listed, lambda cpu: _within(cpu, cpu.die))),
        (("cluster_cpus",), _sets(listed, lambda cpu: _within(cpu, cpu.cluster))),
        (("book_siblings",), _sets(listed, lambda cpu: cpu.book)),
        (("drawer_siblings",), _sets(listed, lambda cpu: cpu.drawer)),
    ]
    spelt: dict[tuple[int, ...], tuple[bytes, bytes]] = {}
    for cpu in listed:
        base = f"{CPU}/cpu{cpu.number}/topology"
        for field, name in ID_FILES.items():
            if (value := getattr(cpu, field)) is not None:
                yield f"{base}/{name}", line(value)
        for names, sets in siblings:
            group = sets.get(cpu.number)
            if group is None:
                continue
            if group not in spelt:
                spelt[group] = line(format_mask(group, width)), line(format_list(group))
            mask, listing = spelt[group]
            for name in names:
                yield f"{base}/{name}", mask
                if sysfs != "masks":
                    yield f"{base}/{name}_list", listing


def _within(cpu: Cpu, part: int | None) -> tuple[int | None, int] | None:
    """Returns a key for a part of the package.

    If each CPU is its own part, the kernel writes -1, or the largest id of 16 bits.
    """
    if part is None:
        return None
    return (None, cpu.number) if part in (-1, NO_PART) else (cpu.socket, part)


def _package_group(cpu: Cpu) -> object:
    # CPUs without a package id also form a group, unless the profile says otherwise.
    return ("id", cpu.socket) if cpu.package_group is None else cpu.package_group


def _sets(cpus: Iterable[Cpu], key: Callable[[Cpu], object]) -> dict[int, tuple[int, ...]]:
    """Maps each CPU with a key to the CPUs with the same key."""
    groups: dict[object, list[int]] = {}
    for cpu in cpus:
        if (value := key(cpu)) is not None:
            groups.setdefault(value, []).append(cpu.number)
    return {
        number: group for found in groups.values() for group in (tuple(found),) for number in group
    }


def _caches(
    machine: Machine, architecture: str, sysfs: Sysfs, width: int
) -> Iterator[tuple[str, Entry]]:
    place: dict[int, int] = {}
    for kind in machine.caches:
        common = _cache_values(kind)
        if architecture in _PC and kind.ways is not None:
            common["physical_line_partition"] = line(1)
        for group in kind.groups:
            files = {**common, "shared_cpu_map": line(format_mask(group.cpus, width))}
            if sysfs != "masks":
                files["shared_cpu_list"] = line(format_list(group.cpus))
            for cpu, number in zip(group.cpus, group.ids, strict=True):
                if not machine.by_number[cpu].cache:
                    continue
                index = place.get(cpu, 0) if kind.index is None else kind.index
                place[cpu] = index + 1
                base = f"{CPU}/cpu{cpu}/cache/index{index}"
                if number is not None:
                    yield f"{base}/id", line(number)
                for name, content in files.items():
                    yield f"{base}/{name}", content


def _cache_values(kind: CacheKind) -> dict[str, bytes]:
    values = {name: getattr(kind, field) for field, name in CACHE_FILES.items()}
    values["size"] = None if kind.size is None else f"{kind.size}K"
    return {name: line(value) for name, value in values.items() if value is not None}


def node_files(machine: Machine, sysfs: Sysfs) -> dict[str, Entry]:
    """Returns all files and links below `node`, by path; none for a machine without nodes."""
    if not machine.nodes:
        return {}
    numbers = [node.number for node in machine.nodes]
    online = {cpu.number for cpu in machine.cpus if cpu.online}
    with_cpu = [node.number for node in machine.nodes if online.intersection(node.cpus)]
    with_memory = [node.number for node in machine.nodes if node.memory]
    files: dict[str, Entry] = {
        f"{NODE}/possible": line(format_list(machine.possible_nodes)),
        f"{NODE}/online": line(format_list(numbers)),
        f"{NODE}/has_cpu": line(format_list(with_cpu)),
        f"{NODE}/has_memory": line(format_list(with_memory)),
        f"{NODE}/has_normal_memory": line(format_list(with_memory)),
    }
    if sysfs == "full":
        files[f"{NODE}/has_generic_initiator"] = line("")
    width = machine.possible[-1] + 1
    for node in machine.nodes:
        base = f"{NODE}/node{node.number}"
        running = sorted(online.intersection(node.cpus)) if node.cpulist is None else node.cpulist
        files[f"{base}/cpulist"] = line(format_list(running))
        files[f"{base}/cpumap"] = line(format_mask(running, width))
        files[f"{base}/distance"] = line(node.distance)
        for cpu in node.cpus:
            files[f"{base}/cpu{cpu}"] = Symlink(f"../../cpu/cpu{cpu}")
        if node.memory is not None:
            files[f"{base}/meminfo"] = node_meminfo(machine, node, node.memory, sysfs)
        files.update(hugepage_files(f"{base}/hugepages", node.hugepages, ("surplus_hugepages",)))
        files.update(_access(node))
    return files


def _access(node: NUMANode) -> Iterator[tuple[str, Entry]]:
    """Yields the values of each class of access, and links from and to its initiators."""
    for number, access in enumerate(node.access):
        base = f"{NODE}/node{node.number}/access{number}/initiators"
        for name, value in access.values.items():
            yield f"{base}/{name}", line(value)
        for initiator in access.initiators:
            yield f"{base}/node{initiator}", Symlink(f"../../../node{initiator}")
            target = f"{NODE}/node{initiator}/access{number}/targets/node{node.number}"
            yield target, Symlink(f"../../../node{node.number}")


def machine_hugepage_files(machine: Machine) -> dict[str, Entry]:
    """Returns the files for each size of the machine's huge pages."""
    base = f"{KERNEL}/mm/hugepages"
    files = hugepage_files(base, machine.hugepages, _POOL)
    if machine.nodes:
        for size, count in machine.hugepages.items():
            files[f"{base}/hugepages-{size}kB/nr_hugepages_mempolicy"] = line(count)
    return files


def hugepage_files(
    base: str, hugepages: Mapping[int, int], others: tuple[str, ...]
) -> dict[str, Entry]:
    """Returns the files for each page size (in KiB), with all pages free."""
    files: dict[str, Entry] = {}
    for size, count in hugepages.items():
        directory = f"{base}/hugepages-{size}kB"
        files[f"{directory}/nr_hugepages"] = line(count)
        files[f"{directory}/free_hugepages"] = line(count)
        for name in others:
            files[f"{directory}/{name}"] = line(0)
    return files
