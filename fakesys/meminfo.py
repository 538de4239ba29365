"""`/proc/meminfo` and the `meminfo` files of NUMA nodes, on a machine that has just started.

Linux's Documentation/filesystems/proc.rst describes the rows. Rows that depend on the kernel's
configuration are omitted.
"""

from collections.abc import Mapping

from numaproof.fakesys.machine import Machine, NUMANode, Sysfs

# The fraction of memory that is free right after the start.
_FREE = 0.9

# KiB for vmalloc: the size on x86-64 with four-level page tables.
_VMALLOC = 34_359_738_367


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_MACHINE = _names("""
MemTotal MemFree MemAvailable Buffers Cached SwapCached Active Inactive Active(anon) Inactive(anon)
Active(file) Inactive(file) Unevictable Mlocked SwapTotal SwapFree Dirty Writeback AnonPages Mapped
Shmem KReclaimable Slab SReclaimable SUnreclaim KernelStack PageTables NFS_Unstable Bounce
WritebackTmp CommitLimit Committed_AS VmallocTotal VmallocUsed VmallocChunk Percpu AnonHugePages
ShmemHugePages ShmemPmdMapped FileHugePages FilePmdMapped HugePages_Total HugePages_Free
HugePages_Rsvd HugePages_Surp Hugepagesize Hugetlb
""")
_NODE = _names("""
MemTotal MemFree MemUsed SwapCached Active Inactive Active(anon) Inactive(anon) Active(file)
Inactive(file) Unevictable Mlocked Dirty Writeback FilePages Mapped AnonPages Shmem KernelStack
PageTables NFS_Unstable Bounce WritebackTmp KReclaimable Slab SReclaimable SUnreclaim AnonHugePages
ShmemHugePages ShmemPmdMapped FileHugePages FilePmdMapped HugePages_Total HugePages_Free
HugePages_Surp
""")

# Kernels with `lists` lack the first group of rows; kernels with `masks` lack both.
_SINCE_FULL = _names("""
KReclaimable Percpu ShmemHugePages ShmemPmdMapped FileHugePages FilePmdMapped Hugetlb
""")
_SINCE_LISTS = _names("""
MemAvailable Active(anon) Inactive(anon) Active(file) Inactive(file) Unevictable Mlocked Shmem
KernelStack AnonHugePages
""")
_MISSING: Mapping[Sysfs, frozenset[str]] = {
    "full": frozenset(),
    "lists": frozenset(_SINCE_FULL),
    "masks": frozenset(_SINCE_FULL + _SINCE_LISTS),
}


def machine_meminfo(machine: Machine, sysfs: Sysfs) -> bytes:
    free = free_memory(machine.memory, machine.hugepages)
    values = {
        "MemTotal": machine.memory,
        "MemFree": free,
        "MemAvailable": free,
        "CommitLimit": max(machine.memory - _in_huge_pages(machine.hugepages), 0) // 2,
        "VmallocTotal": _VMALLOC,
        **_pages(machine, machine.hugepages),
        "Hugepagesize": _default_page(machine),
        "Hugetlb": _in_huge_pages(machine.hugepages),
    }
    rows = (_row(name, values.get(name, 0), 8) for name in _MACHINE if name not in _MISSING[sysfs])
    return "".join(rows).encode()


def node_meminfo(machine: Machine, node: NUMANode, total: int, sysfs: Sysfs) -> bytes:
    """Returns the text of a node's `meminfo` with `total` KiB of memory."""
    free = free_memory(total, node.hugepages)
    values = {
        "MemTotal": total,
        "MemFree": free,
        "MemUsed": total - free,
        **_pages(machine, node.hugepages),
    }
    rows = (_row(name, values.get(name, 0), 6) for name in _NODE if name not in _MISSING[sysfs])
    return "".join(f"Node {node.number} {row}" for row in rows).encode()


def free_memory(total: int, hugepages: Mapping[int, int]) -> int:
    """Returns the free memory in KiB: most of the memory outside huge pages."""
    return int(max(total - _in_huge_pages(hugepages), 0) * _FREE)


def _row(name: str, value: int, width: int) -> str:
    """Formats a row in KiB, or with a number of huge pages, padded to `width` characters."""
    if name.startswith("HugePages_"):
        return f"{name + ':':<16}{value:>{width}}\n"
    return f"{name + ':':<16}{value:>8} kB\n"


def _in_huge_pages(hugepages: Mapping[int, int]) -> int:
    return sum(size * count for size, count in hugepages.items())


def _pages(machine: Machine, hugepages: Mapping[int, int]) -> dict[str, int]:
    """Returns the rows for pages of the default size, all of them free."""
    count = hugepages.get(_default_page(machine), 0)
    return {"HugePages_Total": count, "HugePages_Free": count}


def _default_page(machine: Machine) -> int:
    """Returns the default page size in KiB: 2 MiB if the machine has it, else its smallest."""
    usual = 2048
    return usual if usual in machine.hugepages else min(machine.hugepages, default=usual)
