"""`/sys/devices/system/node` and the hugepage directories.

Their contents are described in Documentation/ABI/stable/sysfs-devices-node of Linux.
"""

from collections.abc import Mapping

from numaproof.fakesys.entries import NODE, Entry, Symlink, line
from numaproof.fakesys.machine import Machine, NUMANode
from numaproof.fakesys.ranges import format_list, format_mask

# The fraction of memory that is free on a machine that has just started.
_FREE = 0.9


def node_files(machine: Machine) -> dict[str, Entry]:
    """All files and links below `node`, by path; none for a machine without nodes."""
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
            files[f"{base}/meminfo"] = _meminfo(node, node.memory)
        files.update(hugepage_files(f"{base}/hugepages", node.hugepages, ("surplus_hugepages",)))
    return files


def hugepage_files(
    base: str, hugepages: Mapping[int, int], others: tuple[str, ...]
) -> dict[str, Entry]:
    """The files for each page size (in KiB), with all pages free."""
    files: dict[str, Entry] = {}
    for size, count in hugepages.items():
        directory = f"{base}/hugepages-{size}kB"
        files[f"{directory}/nr_hugepages"] = line(count)
        files[f"{directory}/free_hugepages"] = line(count)
        for name in others:
            files[f"{directory}/{name}"] = line(0)
    return files


def free_memory(total: int, hugepages: Mapping[int, int]) -> int:
    """Free memory in KiB: most of what huge pages do not take."""
    reserved = sum(size * count for size, count in hugepages.items())
    return int(max(total - reserved, 0) * _FREE)


def _meminfo(node: NUMANode, total: int) -> bytes:
    free = free_memory(total, node.hugepages)
    pages = node.hugepages.get(2048, 0)
    rows = (
        ("MemTotal:", f"{total:>14} kB"),
        ("MemFree:", f"{free:>15} kB"),
        ("MemUsed:", f"{total - free:>15} kB"),
        ("HugePages_Total:", f"{pages:>6}"),
        ("HugePages_Free:", f"{pages:>7}"),
        ("HugePages_Surp:", f"{0:>7}"),
    )
    return "".join(f"Node {node.number} {key} {value}\n" for key, value in rows).encode()
