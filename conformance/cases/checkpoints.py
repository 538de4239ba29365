"""Builds checkpoint files from fields, with the kubelet's checksums.

The checksum is the 32-bit FNV-1a hash of the structure that the file is read into, as dumped by
Go's spew printer with the checksum set to zero. This module shares no code with the reference, so
that cases don't depend on what they test.

Files in the newest formats also have ``data``, a string that contains JSON, and ``dataChecksum``,
the checksum of that string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from fnv_hash_fast import fnv1a_32

from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHECKSUM = "checksum"
DATA = "data"
DATA_CHECKSUM = "dataChecksum"
_PODS = "podEntries"


class FieldsError(ValueError):
    """The fields match none of the kubelet's structures and thus have no checksum."""


class _Kind(NamedTuple):
    """A Go type: its name, its zero value, and the function that renders a value."""

    go: str
    zero: Any
    render: Callable[[Any], str]


def _plain(go: str, zero: int | str) -> _Kind:
    """A type for numbers or strings."""

    def show(value: Any) -> str:
        if type(value) is not type(zero):
            raise FieldsError(f"{_json(value)} is not a {go}")
        return str(value)

    return _Kind(go, zero, show)


def _cpus(value: Any) -> str:
    """Renders CPUs, which are a string in the file but a map to empty structs in Go."""
    cpus = " ".join(
        f"{cpu}:{{}}" for cpu in CPUSet.parse(_require_type(str, value, "cpuset.CPUSet"))
    )
    return f"{{elems:(map[int]struct {{}})map[{cpus}]}}"


def _list(go: str, item: _Kind) -> _Kind:
    def show(value: Any) -> str:
        if value is None:
            return "<nil>"
        return f"[{' '.join(map(item.render, _require_type(list, value, go)))}]"

    return _Kind(go, None, show)


def _map(
    go: str, item: _Kind, key: type[int | str] = str, *, empty_if_missing: bool = False
) -> _Kind:
    """A map type; `empty_if_missing` makes it empty rather than nil if the file lacks the key."""

    def show(value: Any) -> str:
        if value is None:
            return "<nil>"
        entries = _require_type(dict, value, go)
        try:
            keys = sorted(entries, key=key)
        except ValueError:
            raise FieldsError(f"a key of {go} is not a number") from None
        return f"map[{' '.join(f'{one}:{item.render(entries[one])}' for one in keys)}]"

    return _Kind(go, {} if empty_if_missing else None, show)


_Fields = dict[str, tuple[str, _Kind]]
"""The fields of a structure by their names in the file, with their names in Go."""


def _struct(go: str, fields: _Fields, pointer: str = "<*>") -> _Kind:
    def show(value: Any) -> str:
        given = _require_type(dict, value, go)
        if unknown := given.keys() - fields.keys():
            raise FieldsError(f"{go} has no {', '.join(sorted(unknown))}")
        parts = (
            f"{own}:({kind.go}){kind.render(given.get(name, kind.zero))}"
            for name, (own, kind) in fields.items()
        )
        return f"{pointer}{{{' '.join(parts)}}}"

    return _Kind(go, None, show)


def _require_type(kind: type, value: Any, go: str) -> Any:
    if not isinstance(value, kind):
        raise FieldsError(f"{_json(value)} is not a {go}")
    return value


_TEXT, _UINT, _INT = _plain("string", ""), _plain("uint64", 0), _plain("int", 0)
_POLICY: _Fields = {"policyName": ("PolicyName", _TEXT)}
_CHECKSUM: _Fields = {CHECKSUM: ("Checksum", _plain("checksum.Checksum", 0))}
_BY_ID = _map("map[string]string", _TEXT, empty_if_missing=True)
_BY_POD = _map(
    "map[string]map[string]string", _map("map[string]string", _TEXT), empty_if_missing=True
)
_POD_CPUS = _struct("state.PodEntry", {"cpuSet": ("CPUSet", _Kind("cpuset.CPUSet", "", _cpus))}, "")
_BLOCK = _struct(
    "state.Block",
    {
        "numaAffinity": ("NUMAAffinity", _list("[]int", _INT)),
        "type": ("Type", _plain("v1.ResourceName", "")),
        "size": ("Size", _UINT),
    },
    "",
)
_BLOCKS = _list("[]state.Block", _BLOCK)
_TABLE = _struct(
    "state.MemoryTable",
    {
        "total": ("TotalMemSize", _UINT),
        "systemReserved": ("SystemReserved", _UINT),
        "allocatable": ("Allocatable", _UINT),
        "reserved": ("Reserved", _UINT),
        "free": ("Free", _UINT),
    },
)
_NODE = _struct(
    "state.NUMANodeState",
    {
        "numberOfAssignments": ("NumberOfAssignments", _INT),
        "memoryMap": ("MemoryMap", _map("map[v1.ResourceName]*state.MemoryTable", _TABLE)),
        "cells": ("Cells", _list("[]int", _INT)),
    },
)
_MEMORY: _Fields = {
    "machineState": ("MachineState", _map("state.NUMANodeMap", _NODE, int, empty_if_missing=True)),
    "entries": (
        "Entries",
        _map(
            "state.ContainerMemoryAssignments",
            _map("map[string][]state.Block", _BLOCKS),
            empty_if_missing=True,
        ),
    ),
}
_POD_MEMORY = _struct("state.PodEntry", {"memoryBlocks": ("MemoryBlocks", _BLOCKS)}, "")
_PODS_OF = {
    "CPU": _map("state.PodCPUAssignments", _POD_CPUS, empty_if_missing=True),
    "Memory": _map("state.PodMemoryAssignments", _POD_MEMORY, empty_if_missing=True),
}


def _structure(fields: Mapping[str, Any]) -> _Kind:
    """The structure that a kubelet reads these fields into.

    Only the Memory Manager has ``machineState``. In the CPU Manager's first format, entries are
    strings; the third format has ``podEntries``.
    """
    manager, own = "Memory", _MEMORY
    if "machineState" not in fields:
        entries = _require_type(dict, fields.get("entries") or {}, _BY_ID.go)
        by_id = any(isinstance(one, str) for one in entries.values())
        shown = ("Entries", _BY_ID if by_id else _BY_POD)
        manager, own = "CPU", {"defaultCpuSet": ("DefaultCPUSet", _TEXT), "entries": shown}
    pods = {_PODS: ("PodEntries", _PODS_OF[manager])} if _PODS in fields else {}
    go = f"state.{manager}ManagerCheckpoint"
    return _struct(go, {**_POLICY, **own, **pods, **_CHECKSUM}, f"(*{go})")


def text(fields: Mapping[str, Any]) -> str:
    """Formats a checkpoint file with these fields, in order and as compactly as the kubelet does.

    The checksum follows the fields that it covers. An explicit checksum is written unchanged, and
    None omits it. ``data`` may be fields, which are written as a string, or any other value.
    ``dataChecksum`` works the same way.

    Raises:
        FieldsError: a checksum is needed, but the fields match no structure.
    """
    second = {name: fields[name] for name in (DATA, DATA_CHECKSUM) if name in fields}
    written = {name: value for name, value in fields.items() if name not in second}
    if CHECKSUM not in written and (written or not second):
        written[CHECKSUM] = checksum(written)
    if isinstance(second.get(DATA), dict):
        second[DATA] = _json(second[DATA])
    if DATA in second and DATA_CHECKSUM not in second:
        second[DATA_CHECKSUM] = data_checksum(second[DATA])
    written |= second
    for name in (CHECKSUM, DATA_CHECKSUM):
        if name in written and written[name] is None:
            del written[name]
    return _json(written)


def like(fields: Mapping[str, Any], content: str | None) -> Mapping[str, Any]:
    """Converts the fields to the format of `content`, adding ``data`` if it has a second part.

    Pod-level entries then appear only in ``data``.
    """
    if DATA in fields or f'"{DATA}":' not in (content or ""):
        return fields
    data = {name: one for name, one in fields.items() if name != CHECKSUM}
    return {name: one for name, one in fields.items() if name != _PODS} | {DATA: data}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def checksum(fields: Mapping[str, Any], version: str = "") -> int:
    """The checksum of the structure with these fields; `version` is a suffix for its name.

    Raises:
        FieldsError: the fields match no structure of the kubelet.
    """
    shown = _structure(fields).render(fields)
    return fnv1a_32(shown.replace("Checkpoint)", f"Checkpoint{version})", 1).encode())


def data_checksum(data: Any) -> int:
    """The checksum of a string.

    Raises:
        FieldsError: `data` is not a string.
    """
    return fnv1a_32(f"(string){_require_type(str, data, 'string')}".encode())
