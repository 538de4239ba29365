"""Siblings of a snapshot that do not follow from the ids."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from numaproof.fakesys.entries import CPU
from numaproof.fakesys.machine import Cpu
from numaproof.fakesys.snapshot import Snapshot

Sets = Mapping[int, tuple[int, ...]]


def with_groups(snapshot: Snapshot, cpus: Sequence[Cpu]) -> tuple[Cpu, ...]:
    """The CPUs with groups of siblings, if the files group them differently from the ids.

    Siblings that disagree with each other form no groups and are left to `files`.
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
    """Each CPU's group, as its first CPU; empty if the groups follow from the key."""
    sets: dict[int, tuple[int, ...]] = {}
    follows: dict[object, list[int]] = {}
    for cpu in cpus:
        found = snapshot.cpu_set(f"{CPU}/cpu{cpu.number}/topology/{name}")
        if found is not None:
            sets[cpu.number] = found
        if cpu.topology:
            follows.setdefault(key(cpu), []).append(cpu.number)
    wanted = {number: tuple(group) for group in follows.values() for number in group}
    # Each set is looked at once: thousands of CPUs have the same.
    consistent = all(number in group for number, group in sets.items()) and all(
        sets.get(other) == group for group in set(sets.values()) for other in group
    )
    if not consistent or all(wanted.get(number) == group for number, group in sets.items()):
        return {}
    return {number: group[0] for number, group in sets.items()}
