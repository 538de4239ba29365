"""`/sys/devices/system`: CPUs, NUMA nodes and huge pages (Linux, Documentation/ABI)."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from numaproof.fakesys.entries import CACHE_FILES, CPU, ID_FILES, NODE, Entry, Symlink, line
from numaproof.fakesys.machine import CacheKind, Cpu, Machine, Sysfs
from numaproof.fakesys.meminfo import node_meminfo
from numaproof.fakesys.ranges import format_list, format_mask

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
        f"{CPU}/offline": line(format_list(offline)),
    }
    width = machine.possible[-1] + 1
    if sysfs != "masks":
        files[f"{CPU}/kernel_max"] = line(machine.kernel_max)
        files.update(_node_links(machine))
    if sysfs == "full" or machine.isolated:
        files[f"{CPU}/isolated"] = line(format_list(machine.isolated))
    if sysfs == "full":
        # Without the boot option, the kernel prints a null pointer, as wide as a CPU set.
        files[f"{CPU}/nohz_full"] = line(f"{'(null)':>{width}}")
    fixed = _cannot_go_offline(architecture, sysfs)
    for cpu in machine.cpus:
        if cpu.number or not cpu.online or not fixed:
            files[f"{CPU}/cpu{cpu.number}/online"] = line(int(cpu.online))
        if cpu.capacity is not None:
            files[f"{CPU}/cpu{cpu.number}/cpu_capacity"] = line(cpu.capacity)
    files.update(_topology(machine, sysfs, width))
    files.update(_caches(machine, sysfs, width))
    return files


def _cannot_go_offline(architecture: str, sysfs: Sysfs) -> bool:
    """Whether CPU 0 cannot go offline, as on PCs and on mainframes with newer kernels."""
    return architecture in ("x86_64", "i386") or (architecture == "s390x" and sysfs == "full")


def _node_links(machine: Machine) -> Iterator[tuple[str, Entry]]:
    for node in machine.nodes:
        for cpu in node.cpus:
            yield f"{CPU}/cpu{cpu}/node{node.number}", Symlink(f"../../node/node{node.number}")


def _topology(machine: Machine, sysfs: Sysfs, width: int) -> Iterator[tuple[str, Entry]]:
    listed = [cpu for cpu in machine.cpus if cpu.topology]
    siblings = [
        (_THREADS.get(sysfs, ("thread_siblings",)), _sets(listed, _thread_group)),
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
    """Returns a key for a part of the package; the kernel writes -1 if each CPU is its own part."""
    if part is None:
        return None
    return (cpu.socket, part) if part >= 0 else (None, cpu.number)


def _thread_group(cpu: Cpu) -> object:
    return cpu.core if cpu.thread_group is None else cpu.thread_group


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


def _caches(machine: Machine, sysfs: Sysfs, width: int) -> Iterator[tuple[str, Entry]]:
    place: dict[int, int] = {}
    for kind in machine.caches:
        common = _cache_values(kind)
        for group in kind.groups:
            files = dict(common)
            if group.id is not None:
                files["id"] = line(group.id)
            files["shared_cpu_map"] = line(format_mask(group.cpus, width))
            if sysfs != "masks":
                files["shared_cpu_list"] = line(format_list(group.cpus))
            for cpu in group.cpus:
                if not machine.by_number[cpu].cache:
                    continue
                index = place.get(cpu, 0) if kind.index is None else kind.index
                place[cpu] = index + 1
                base = f"{CPU}/cpu{cpu}/cache/index{index}"
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
        f"{NODE}/possible": line(format_list(numbers)),
        f"{NODE}/online": line(format_list(numbers)),
        f"{NODE}/has_cpu": line(format_list(with_cpu)),
        f"{NODE}/has_memory": line(format_list(with_memory)),
        f"{NODE}/has_normal_memory": line(format_list(with_memory)),
    }
    width = machine.possible[-1] + 1
    for node in machine.nodes:
        base = f"{NODE}/node{node.number}"
        running = sorted(online.intersection(node.cpus))
        files[f"{base}/cpulist"] = line(format_list(running))
        files[f"{base}/cpumap"] = line(format_mask(running, width))
        files[f"{base}/distance"] = line(node.distance)
        for cpu in node.cpus:
            files[f"{base}/cpu{cpu}"] = Symlink(f"../../cpu/cpu{cpu}")
        if node.memory is not None:
            files[f"{base}/meminfo"] = node_meminfo(machine, node, node.memory, sysfs)
        files.update(hugepage_files(f"{base}/hugepages", node.hugepages, ("surplus_hugepages",)))
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
