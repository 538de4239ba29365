"""`/sys/devices/system/node` and the hugepage directories.

Their contents are described in Documentation/ABI/stable/sysfs-devices-node of Linux.
"""

from collections.abc import Mapping

from numaproof.fakesys.entries import NODE, Entry, Symlink, line
from numaproof.fakesys.machine import Machine, Sysfs
from numaproof.fakesys.meminfo import node_meminfo
from numaproof.fakesys.ranges import format_list, format_mask


def node_files(machine: Machine, sysfs: Sysfs) -> dict[str, Entry]:
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
            files[f"{base}/meminfo"] = node_meminfo(machine, node, node.memory, sysfs)
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
