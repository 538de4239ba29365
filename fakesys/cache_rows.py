"""The caches of a snapshot as rows of a profile."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from numaproof.fakesys.caches import lay_out_caches
from numaproof.fakesys.entries import CPU
from numaproof.fakesys.fields import format_kilobytes
from numaproof.fakesys.machine import Cpu, NUMANode
from numaproof.fakesys.profile import CacheRow
from numaproof.fakesys.ranges import format_list, format_sequence
from numaproof.fakesys.snapshot import Snapshot

_MAX_LEVEL = 9
_TYPES = ("Data", "Instruction", "Unified")


class _Kind(NamedTuple):
    """The properties that a row's caches share; sizes are in KiB, or None without a file."""

    position: int
    level: int
    type: str
    size: int | None
    line: int | None
    ways: int | None
    sets: int | None


class _Cache(NamedTuple):
    """A CPU's cache: the CPUs that share it according to its files, and its id."""

    cpu: int
    claim: tuple[int, ...]
    id: int | None


def cache_rows(
    snapshot: Snapshot, cpus: tuple[Cpu, ...], nodes: tuple[NUMANode, ...]
) -> tuple[CacheRow, ...]:
    """Returns rows that describe the snapshot's caches, except for odd files."""
    found: dict[_Kind, list[_Cache]] = {}
    for kind, cache in _read(snapshot):
        found.setdefault(kind, []).append(cache)
    kinds = sorted(found.items(), key=lambda item: (item[0].position, item[1][0].cpu))
    place: dict[int, int] = {}
    counted: dict[tuple[int, str], int] = {}
    rows = []
    for kind, caches in kinds:
        row = _row(kind, caches, cpus, nodes)
        start = counted.get((kind.level, kind.type), 0)
        ids = row.ids
        groups = lay_out_caches((msgspec.structs.replace(row, ids=None),), cpus, nodes)[0].groups
        if isinstance(ids, str) and ids == format_sequence(range(start, start + len(groups))):
            row = msgspec.structs.replace(row, ids=None)
        if any(place.get(cache.cpu, 0) != kind.position for cache in caches):
            row = msgspec.structs.replace(row, index=kind.position)
        place.update({cache.cpu: kind.position + 1 for cache in caches})
        counted[kind.level, kind.type] = start + len(groups)
        rows.append(row)
    return tuple(rows)


def _read(snapshot: Snapshot) -> Iterator[tuple[_Kind, _Cache]]:
    by_cpu: dict[int, set[int]] = {}
    for path in snapshot.files:
        match = re.fullmatch(rf"{CPU}/cpu(\d+)/cache/index(\d+)/level", path)
        if match:
            by_cpu.setdefault(int(match[1]), set()).add(int(match[2]))
    for cpu in snapshot.cpus:
        for index in sorted(by_cpu.get(cpu, ())):
            base = f"{CPU}/cpu{cpu}/cache/index{index}"
            level, kind = snapshot.number(f"{base}/level"), snapshot.text(f"{base}/type")
            if level is None or not 0 < level <= _MAX_LEVEL or kind not in _TYPES:
                continue
            size = re.fullmatch(r"(\d{1,12})K", snapshot.text(f"{base}/size") or "")
            yield (
                _Kind(
                    index,
                    level,
                    kind,
                    int(size[1]) if size else None,
                    snapshot.number(f"{base}/coherency_line_size"),
                    snapshot.number(f"{base}/ways_of_associativity"),
                    snapshot.number(f"{base}/number_of_sets"),
                ),
                _Cache(cpu, _claim(snapshot, base, cpu), snapshot.number(f"{base}/id")),
            )


def _claim(snapshot: Snapshot, base: str, cpu: int) -> tuple[int, ...]:
    """Returns the CPUs that share a cache, from its list or, if that lacks the CPU, its map."""
    for name in ("shared_cpu_list", "shared_cpu_map"):
        claim = snapshot.cpu_set(f"{base}/{name}")
        if claim and cpu in claim:
            return claim
    return (cpu,)


def _row(
    kind: _Kind, caches: Sequence[_Cache], cpus: tuple[Cpu, ...], nodes: tuple[NUMANode, ...]
) -> CacheRow:
    groups = _groups(caches, {cpu.number for cpu in cpus})
    ids = {cache.cpu: cache.id for cache in reversed(caches)}
    numbers = [next(ids[cpu] for cpu in group if cpu in ids) for group in groups]
    if any(ids.get(cpu, n) != n for group, n in zip(groups, numbers, strict=True) for cpu in group):
        numbers = [ids.get(cpu) for cpu in sorted(cpu for group in groups for cpu in group)]
    having = tuple(cache.cpu for cache in caches)
    row = CacheRow(
        level=kind.level,
        type=kind.type,  # type: ignore[arg-type] # one of the three, as _read has checked
        size="none" if kind.size is None else format_kilobytes(kind.size),
        shared=tuple(format_list(group) for group in groups),
        ids="none" if set(numbers) == {None} else format_sequence(numbers),
        line=kind.line,
        ways=kind.ways,
        sets=None if _follows(kind) else kind.sets,
    )
    everyone = having == tuple(cpu.number for cpu in cpus if cpu.cache)
    chosen = None if everyone else format_list(having)
    for scope in _scopes(groups[0], cpus):
        spoken = msgspec.structs.replace(row, shared=scope, cpus=chosen, ids=None)
        laid_out = lay_out_caches((spoken,), cpus, nodes)[0].groups
        if [group.cpus for group in laid_out] == groups:
            return msgspec.structs.replace(spoken, ids=row.ids)
    return row


def _groups(caches: Sequence[_Cache], known_cpus: set[int]) -> list[tuple[int, ...]]:
    """Groups CPUs by cache: as claimed if the claims agree, otherwise by equal claims."""
    claimants: dict[tuple[int, ...], list[int]] = {}
    for cache in caches:
        claimants.setdefault(cache.claim, []).append(cache.cpu)
    claimed = [cpu for claim in claimants for cpu in claim]
    agree = len(claimed) == len(set(claimed)) and set(claimed) <= known_cpus
    if agree and all(set(cpus) <= set(claim) for claim, cpus in claimants.items()):
        return list(claimants)
    return [tuple(cpus) for cpus in claimants.values()]


def _follows(kind: _Kind) -> bool:
    if not (kind.size and kind.line and kind.ways):
        return False
    return kind.sets == kind.size * 1024 // (kind.line * kind.ways)


def _scopes(group: tuple[int, ...], cpus: Sequence[Cpu]) -> Iterator[str]:
    yield from ("core", "cpu", "socket", "node")
    if any(cpu.die is not None for cpu in cpus):
        yield "die"
    if any(cpu.cluster is not None for cpu in cpus):
        yield "cluster"
    by_number: Mapping[int, Cpu] = {cpu.number: cpu for cpu in cpus}
    yield f"{len({by_number[cpu].core for cpu in group})} cores"
    yield "machine"
