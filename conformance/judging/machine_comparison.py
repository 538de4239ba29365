"""Compares discovered machines by the fields that an implementation discovers.

Implementations that discover less than cAdvisor may number and order cores and caches freely. Cores
are therefore identified by their CPUs, and their properties are compared per CPU.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from numaproof.conformance.judging.finding import Finding
from numaproof.conformance.requirements import (
    ASPECTS,
    EXTRA_CPUS,
    MISSING_CPUS,
    NODE_IDS,
    UNTOLD_CACHES,
    Requirement,
    load_registry,
)
from numaproof.protocol import codec
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.machine import Core, HugePages, MachineInfo, UncoreCache
from numaproof.protocol.mismatch import ABSENT, short_text
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


def difference(
    actual: MachineInfo, expected: MachineInfo, fields: Collection[str]
) -> Finding | None:
    """How a machine differs from the expected one in `fields`; None if they agree."""
    views = _views(expected, fields), _views(actual, fields)
    for name in DISCOVERED:
        if name not in views[0]:
            continue
        right, found = (view[name] for view in views)
        if not isinstance(right, dict):
            if right != found:
                return Finding(
                    "other side", name, "", short_text(right), short_text(found), kind="field"
                )
            continue
        for key in sorted({*right, *found}):
            if right.get(key, ABSENT) != found.get(key, ABSENT):
                due, seen = (
                    short_text(one[key]) if key in one else ABSENT for one in (right, found)
                )
                return Finding("other side", name, str(key), due, seen)
    return None


def differing(
    left: object, right: object, discovers: Collection[str] | None = None
) -> frozenset[str]:
    """How the discovered machine differs from the real one; empty if either is not a machine.

    CPUs and nodes are compared only if both machines have them, so that an extra CPU or a different
    node id counts as one difference.

    Args:
        left: the discovered machine, or another answer.
        right: the real machine, or another answer.
        discovers: the fields to compare; None for all.
    """
    if not (isinstance(left, MachineInfo) and isinstance(right, MachineInfo)):
        return frozenset()
    fields = DISCOVERED if discovers is None else discovers
    one, other = _views(left, fields), _views(right, fields)
    apart = {"cores", *_OF_CACHES}
    found = {name for name in one if name not in apart and _differ(name, one, other)}
    cpus = tuple(CPUSet(_of_cpus(side)) for side in (left, right))
    sides = _group_by_core(left, cpus[1]), _group_by_core(right, cpus[0])
    if "cores" in one and (sides[0] != sides[1] or bool(cpus[0]) != bool(cpus[1])):
        found.add("cores")
    for name in _OF_CACHES & one.keys():
        found |= _differing_caches(name, one[name], other[name])
    if "nodes" in one and one["nodes"].keys() != other["nodes"].keys():
        found.add(NODE_IDS)
    if {"nodes", "cores"} & one.keys():
        found |= {MISSING_CPUS} if cpus[1] - cpus[0] else set()
        found |= {EXTRA_CPUS} if cpus[0] - cpus[1] else set()
    return frozenset(found)


def _of_cpus(machine: MachineInfo) -> Iterator[int]:
    for node in machine.topology or ():
        yield from _cpus(node.cores)


def _differ(name: str, view: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a field differs for any node or CPU that both machines have."""
    mine, its = view[name], other[name]
    if name not in _OF_EACH or not (mine and its):
        return bool(mine != its)
    if name == "nodes":
        mine, its = (
            {key: CPUSet.parse(cpus) for key, cpus in side.items()} for side in (mine, its)
        )
        common = CPUSet.union(mine.values()) & CPUSet.union(its.values())
        mine, its = ({key: cpus & common for key, cpus in side.items()} for side in (mine, its))
    return any(mine[key] != its[key] for key in mine.keys() & its.keys())


def _group_by_core(machine: MachineInfo, known_cpus: CPUSet) -> list[str]:
    """The CPUs of each core, restricted to those that the other machine also has."""
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    sets = (CPUSet(core.thread_ids or ()) & known_cpus for core in cores)
    return sorted(str(cpus) for cpus in sets if cpus)


def _differing_caches(
    name: str, caches: Mapping[int, Sequence[object]], other: Mapping[int, Sequence[object]]
) -> set[str]:
    """How caches differ: they are wrong, or there should be none."""
    if not (caches and other):
        return {name} if caches != other else set()
    wrong = [key for key in caches.keys() & other.keys() if caches[key] != other[key]]
    return {name if other[key] else UNTOLD_CACHES for key in wrong}


_OF_EACH = frozenset(
    {"nodes", "node_memory", "node_hugepages", "distances", "core_ids", "socket_ids"}
)
"""Fields with a value per node or per CPU, except caches and cores."""

_OF_CACHES = frozenset({"caches", "uncore_caches", "node_caches"})
"""Cache fields, with a value per CPU or per node."""


def _views(machine: MachineInfo, fields: Collection[str]) -> dict[str, Any]:
    """The compared fields by name: a single value, or one per node, core or CPU."""
    nodes = {one.node_id: one for one in machine.topology or ()}
    cores = [core for one in nodes.values() for core in one.cores or ()]
    of_cpu = {cpu: core for core in cores for cpu in core.thread_ids or ()}
    named = "cache_ids" in fields
    sharing = _sharing(of_cpu)
    views = {
        "num_cores": machine.num_cores,
        "num_physical_cores": machine.num_physical_cores,
        "num_sockets": machine.num_sockets,
        "memory_capacity": machine.memory_capacity,
        "hugepages": _pools(machine.hugepages),
        "nodes": {key: str(_cpus(one.cores)) for key, one in nodes.items()},
        "node_memory": {key: one.memory for key, one in nodes.items()},
        "node_hugepages": {key: _pools(one.hugepages) for key, one in nodes.items()},
        "distances": {key: [*(one.distances or ())] for key, one in nodes.items()},
        "cores": _by_lowest(cores),
        "core_ids": {cpu: core.core_id for cpu, core in of_cpu.items()},
        "socket_ids": {cpu: core.socket_id for cpu, core in of_cpu.items()},
        "caches": {cpu: _list_caches(core.caches, with_ids=named) for cpu, core in of_cpu.items()},
        "uncore_caches": {
            cpu: [
                {**shown, "cpus": str(sharing[_key(one)])}
                for one, shown in _describe_caches(core.uncore_caches, with_ids=named)
            ]
            for cpu, core in of_cpu.items()
        },
        "node_caches": {
            key: _list_caches(one.caches, with_ids=named) for key, one in nodes.items()
        },
    }
    return {name: view for name, view in views.items() if name in fields}


def _cpus(cores: Iterable[Core] | None) -> CPUSet:
    return CPUSet(cpu for core in cores or () for cpu in core.thread_ids or ())


def _pools(pools: Iterable[HugePages] | None) -> dict[int, int]:
    return {one.page_size: one.num_pages for one in pools or ()}


def _by_lowest(cores: Iterable[Core]) -> dict[int, str]:
    """The CPUs of each core, by its lowest CPU.

    Broken machines may list a CPU in several cores; such cores are merged.
    """
    found: dict[int, list[str]] = {}
    for core in cores:
        if core.thread_ids:
            found.setdefault(min(core.thread_ids), []).append(str(CPUSet(core.thread_ids)))
    return {cpu: " and ".join(sorted(texts)) for cpu, texts in found.items()}


def _key(cache: UncoreCache) -> tuple[int, str, int]:
    return cache.level, cache.type, cache.id


def _sharing(of_cpu: Mapping[int, Core]) -> dict[tuple[int, str, int], CPUSet]:
    """The CPUs that share each uncore cache."""
    found: dict[tuple[int, str, int], list[int]] = {}
    for cpu, core in of_cpu.items():
        for cache in core.uncore_caches or ():
            found.setdefault(_key(cache), []).append(cpu)
    return {key: CPUSet(cpus) for key, cpus in found.items()}


def _list_caches(caches: Iterable[UncoreCache] | None, *, with_ids: bool) -> list[dict[str, Any]]:
    return [shown for _, shown in _describe_caches(caches, with_ids=with_ids)]


def _describe_caches(
    caches: Iterable[UncoreCache] | None, *, with_ids: bool
) -> Iterator[tuple[UncoreCache, dict[str, Any]]]:
    """Caches in a canonical order, without their ids unless those are compared."""
    for one in sorted(caches or (), key=_key):
        shown = {"size": one.size, "type": one.type, "level": one.level}
        yield one, {"id": one.id, **shown} if with_ids else shown


# Requirements that a difference affects: a case on a whole machine covers many, but few are broken


def unseen_requirements(ids: Iterable[str], discovers: Collection[str] | None) -> tuple[str, ...]:
    """The requirements that concern only fields that the implementation doesn't discover.

    Args:
        ids: the requirements of a case.
        discovers: the discovered fields; None for all.
    """
    if discovers is None:
        return ()
    return tuple(row.id for row in _rows(ids) if row.discovers and not _is_visible(row, discovers))


def _is_visible(row: Requirement, discovers: Collection[str]) -> bool:
    return any(not ASPECTS[one].isdisjoint(discovers) for one in row.discovers)


def _rows(ids: Iterable[str]) -> Iterator[Requirement]:
    rows = _by_id()
    return (rows[one] for one in ids if one in rows)


@functools.cache
def _by_id() -> Mapping[str, Requirement]:
    return load_registry().by_id()


def kept_requirements(
    ids: Iterable[str], wrong: Collection[str], discovers: Collection[str] | None
) -> tuple[str, ...]:
    """The requirements that a wrongly discovered machine still meets.

    Empty if no field differs, for example if only the order of nodes does.

    Args:
        ids: the requirements of a case.
        wrong: how the machine differs; see `differing`.
        discovers: the compared fields; None for all.
    """
    if not wrong:
        return ()
    fields = DISCOVERED if discovers is None else discovers
    return tuple(
        row.id
        for row in _rows(ids)
        if _is_visible(row, fields) and frozenset(wrong).isdisjoint(row.discovers)
    )


def broken_everywhere(wrong: Collection[str]) -> tuple[str, ...]:
    """The ids of the requirements that apply to every machine and that these differences break."""
    return tuple(
        row.id
        for row in load_registry().requirements
        if row.everywhere and not frozenset(wrong).isdisjoint(row.discovers)
    )


# A machine as a case describes it


def describe_machine(machine: MachineInfo, fields: Collection[str] | None = None) -> dict[str, Any]:
    """A machine in the form that cases use: nodes by id, cores by lowest CPU, CPU sets as text.

    If `fields` is given, includes only these and lists each core under all of its CPUs; see
    `keep_fields`.
    """
    plain: dict[str, Any] = codec.to_plain(machine)
    nodes = {str(node["node_id"]): node for node in plain.pop("topology") or ()}
    for node in nodes.values():
        cores = [core | {"cpus": CPUSet(core["thread_ids"] or ())} for core in node["cores"] or ()]
        node["cpus"] = str(CPUSet.union(core["cpus"] for core in cores))
        node["cores"] = {
            str(cpu): core | {"cpus": str(core["cpus"])}
            for core in cores
            for cpu in (core["cpus"].first(1) if fields is None else core["cpus"])
        }
    plain["node_ids"] = sorted(node["node_id"] for node in nodes.values())
    plain["nodes"] = nodes
    return plain if fields is None else keep_fields(plain, fields)


def keep_fields(description: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Restricts a machine's description, or a case's expectation, to `fields`.

    Nodes and cores without any of these fields are left out. If `fields` lacks `nodes`, the cores
    of all nodes are listed together.

    Raises:
        ValueError: part of the expectation is not a mapping.
    """
    found = _keep_visible(description, _OF_MACHINE, fields)
    nodes: dict[str, Any] = {}
    together: dict[str, Any] = {}
    for key, node in _mapping("nodes", description.get("nodes")).items():
        part = _keep_visible(_mapping("node", node), _OF_NODE, fields)
        own = _mapping("cores", node.get("cores"))
        seen = {
            cpu: _keep_visible(_mapping("core", one), _OF_CORE, fields) for cpu, one in own.items()
        }
        cores = {cpu: core for cpu, core in seen.items() if core}
        if "nodes" not in fields:
            together |= cores
        elif cores:
            part["cores"] = cores
        if part:
            nodes[key] = part
    parts = {"nodes": nodes, "cores": together}
    return found | {name: part for name, part in parts.items() if part}


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A part of a description; null counts as empty.

    Raises:
        ValueError: the part is not a mapping.
    """
    if not isinstance(value, dict | None):
        raise ValueError(f"{name}: expected a mapping, got {value!r:.60}")  # noqa: TRY004 - in a file
    return value or {}


def seen_in(description: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that a description contains."""
    return tuple(name for name in DISCOVERED if keep_fields(description, {name}))


def _keep_visible(
    part: Mapping[str, Any], names: Mapping[str, str], fields: Collection[str]
) -> dict[str, Any]:
    named = "cache_ids" in fields
    return {
        key: _sort_list(value, with_ids=named)
        for key, value in part.items()
        if names.get(key) in fields
    }


def _sort_list(value: Any, *, with_ids: bool) -> Any:
    """A list of pools or caches in a canonical order, without cache ids unless they are compared.

    Null counts as an empty list.
    """
    if not isinstance(value, list | tuple | None):
        return value
    listed = list(value or ())
    if not all(isinstance(one, dict) for one in listed):
        return listed
    parts = [{key: one[key] for key in sorted(one) if with_ids or key != "id"} for one in listed]
    return sorted(parts, key=lambda item: [*map(str, item.values())])


_OF_MACHINE = {
    **{name: name for name in ("num_cores", "num_physical_cores", "num_sockets")},
    **{name: name for name in ("memory_capacity", "hugepages")},
    "node_ids": "nodes",
}
_OF_NODE = {
    "cpus": "nodes",
    "memory": "node_memory",
    "hugepages": "node_hugepages",
    "distances": "distances",
    "caches": "node_caches",
}
_OF_CORE = {
    "cpus": "cores",
    "core_id": "core_ids",
    "socket_id": "socket_ids",
    "caches": "caches",
    "uncore_caches": "uncore_caches",
}
"""Maps the fields of a description to their names in ``discovers``."""
