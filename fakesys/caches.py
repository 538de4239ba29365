"""The CPUs that share each cache."""

import re
from collections.abc import Callable, Mapping, Sequence

from numaproof.fakesys.fields import RowBudget, parse_kilobytes, read
from numaproof.fakesys.machine import (
    MAX_CPUS,
    CacheGroup,
    CacheKind,
    Cpu,
    NUMANode,
    ProfileError,
)
from numaproof.fakesys.profile import CacheRow
from numaproof.fakesys.ranges import Value, parse_list, parse_sequence
from numaproof.inputs.plurals import plural

_Key = Callable[[Cpu], object]


def lay_out_caches(
    rows: Sequence[CacheRow], cpus: tuple[Cpu, ...], nodes: tuple[NUMANode, ...]
) -> tuple[CacheKind, ...]:
    """Lays out the caches of rows; ids continue across rows with the same level and type.

    Raises:
        ProfileError: a CPU does not exist or is in two caches of one row, or a size is invalid.
    """
    counted: dict[tuple[int, str], int] = {}
    kinds = []
    budget = RowBudget(8)
    for i, row in enumerate(rows):
        path = ("caches", i, "size")
        size = None if row.size == "none" else read(path, parse_kilobytes, row.size)
        groups = _groups(row, i, cpus, nodes)
        budget.spend(("caches", i), sum(map(len, groups)))
        start = counted.get((row.level, row.type), 0)
        ids = _ids(row, i, groups, start)
        counted[row.level, row.type] = start + len(groups)
        kinds.append(
            CacheKind(
                level=row.level,
                type=row.type,
                size=size,
                line=row.line,
                ways=row.ways,
                sets=_sets(row, size),
                index=row.index,
                groups=tuple(map(CacheGroup, groups, ids)),
            )
        )
    return tuple(kinds)


def _sets(row: CacheRow, size: int | None) -> int | None:
    if row.sets is None and size is not None and row.line and row.ways:
        return size * 1024 // (row.line * row.ways)
    return row.sets


def _ids(
    row: CacheRow, i: int, groups: Sequence[tuple[int, ...]], start: int
) -> list[tuple[Value, ...]]:
    """Returns the ids that the CPUs of each group report."""
    count = len(groups)
    if row.ids is None:
        ids: tuple[Value, ...] = tuple(range(start, start + count))
    else:
        ids = read(("caches", i, "ids"), parse_sequence, row.ids, MAX_CPUS)
    if ids == (None,):
        ids *= count
    if len(ids) == count:
        return [(number,) * len(group) for number, group in zip(ids, groups, strict=True)]
    of_cpu = dict(zip(sorted(cpu for group in groups for cpu in group), ids, strict=False))
    if len(of_cpu) != len(ids) or len(ids) != sum(map(len, groups)):
        raise ProfileError(("caches", i, "ids"), f"expected {plural(count, 'id')}, got {len(ids)}")
    return [tuple(of_cpu[cpu] for cpu in group) for group in groups]


def _groups(
    row: CacheRow, i: int, cpus: tuple[Cpu, ...], nodes: tuple[NUMANode, ...]
) -> list[tuple[int, ...]]:
    known = {cpu.number for cpu in cpus}
    if isinstance(row.shared, tuple):
        return _parse_groups(row.shared, ("caches", i, "shared"), known)
    chosen = [cpu for cpu in cpus if cpu.cache]
    if row.cpus is not None:
        (wanted,) = _parse_groups((row.cpus,), ("caches", i, "cpus"), known)
        chosen = [cpu for cpu in chosen if cpu.number in wanted]
    key = _sharing(row.shared, i, chosen, nodes)
    groups: dict[object, list[int]] = {}
    for cpu in chosen:
        groups.setdefault(key(cpu), []).append(cpu.number)
    return [tuple(group) for group in groups.values()]


def _parse_groups(
    lists: tuple[str | int, ...], path: tuple[str | int, ...], known_cpus: set[int]
) -> list[tuple[int, ...]]:
    groups, seen = [], set()
    for text in lists:
        group = read(path, parse_list, str(text), MAX_CPUS)
        for cpu in group:
            if cpu not in known_cpus:
                raise ProfileError(path, f"CPU {cpu} does not exist")
            if cpu in seen:
                raise ProfileError(path, f"CPU {cpu} is in two caches", "remove it from one")
            seen.add(cpu)
        groups.append(tuple(sorted(group)))
    return groups


def _sharing(shared: str, i: int, cpus: Sequence[Cpu], nodes: tuple[NUMANode, ...]) -> _Key:
    cores = re.fullmatch(r"([1-9]\d{0,3}) cores?", shared)
    if cores:
        place = _places(cpus)
        return lambda cpu: (cpu.socket, place[cpu.core] // int(cores[1]))
    node_of = {cpu: node.number for node in nodes for cpu in node.cpus}
    scopes: dict[str, _Key] = {
        "cpu": lambda cpu: cpu.number,
        "core": lambda cpu: cpu.core,
        "cluster": lambda cpu: (cpu.socket, cpu.cluster),
        "die": lambda cpu: (cpu.socket, cpu.die),
        "node": lambda cpu: node_of.get(cpu.number),
        "socket": lambda cpu: cpu.socket,
        "machine": lambda _: 0,
    }
    if shared not in scopes:
        fix = f"use {', '.join(scopes)}, `4 cores`, or lists of CPUs"
        raise ProfileError(("caches", i, "shared"), f"unknown scope {shared!r}", fix)
    return scopes[shared]


def _places(cpus: Sequence[Cpu]) -> Mapping[tuple[int, ...], int]:
    places: dict[tuple[int, ...], int] = {}
    counts: dict[int, int] = {}
    for core in sorted({cpu.core for cpu in cpus}):
        places[core] = counts.get(core[0], 0)
        counts[core[0]] = places[core] + 1
    return places
