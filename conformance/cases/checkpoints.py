"""Checkpoint files built from fields, with the checksum that the kubelet would give them.

The checksum is the 32-bit FNV-1a hash of a textual dump of the structure that the file is read
into, with the checksum at zero. The dump is that of Go's spew printer. It is written out here a
second time and shares no code with the reference: a case must not take its data from what it tests.

A file of the newest formats has a second part besides: ``data``, a JSON text, and ``dataChecksum``,
the checksum of that text alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from fnv_hash_fast import fnv1a_32

from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKSUM = "checksum"
DATA = "data"
DATA_CHECKSUM = "dataChecksum"
_PODS = "podEntries"


class FieldsError(ValueError):
    """No structure of the kubelet has such fields, so that they have no checksum."""


@dataclass(frozen=True)
class _Plain:
    """A number or a text."""

    go: str
    zero: int | str

    def shown(self, value: Any) -> str:
        if type(value) is not type(self.zero):
            raise FieldsError(f"{_json(value)} is not a {self.go}")
        return str(value)


@dataclass(frozen=True)
class _CPUs:
    """CPUs that the file has as a text, and the structure as a map to nothing."""

    go: str = "cpuset.CPUSet"
    zero: str = ""

    def shown(self, value: Any) -> str:
        cpus = " ".join(f"{cpu}:{{}}" for cpu in CPUSet.parse(_typed(str, value, self.go)))
        return f"{{elems:(map[int]struct {{}})map[{cpus}]}}"


@dataclass(frozen=True)
class _List:
    go: str
    item: _Kind
    zero: None = None

    def shown(self, value: Any) -> str:
        if value is None:
            return "<nil>"
        return f"[{' '.join(self.item.shown(one) for one in _typed(list, value, self.go))}]"


@dataclass(frozen=True)
class _Map:
    """`made` is whether a file without the key leaves an empty map, and not none."""

    go: str
    item: _Kind
    numbered: bool = False
    made: bool = False

    @property
    def zero(self) -> Mapping[str, Any] | None:
        return {} if self.made else None

    def shown(self, value: Any) -> str:
        if value is None:
            return "<nil>"
        entries = _typed(dict, value, self.go)
        try:
            keys = sorted(entries, key=int if self.numbered else None)
        except ValueError:
            raise FieldsError(f"a key of {self.go} is not a number") from None
        return f"map[{' '.join(f'{key}:{self.item.shown(entries[key])}' for key in keys)}]"


@dataclass(frozen=True)
class _Struct:
    """A structure: the names of its fields in the file and in Go, and their kinds."""

    go: str
    fields: Mapping[str, tuple[str, _Kind]]
    pointer: str = "<*>"

    zero = None

    def shown(self, value: Any) -> str:
        given = _typed(dict, value, self.go)
        unknown = given.keys() - self.fields.keys()
        if unknown:
            raise FieldsError(f"{self.go} has no {', '.join(sorted(unknown))}")
        parts = (
            f"{go}:({kind.go}){kind.shown(given.get(name, kind.zero))}"
            for name, (go, kind) in self.fields.items()
        )
        return f"{self.pointer}{{{' '.join(parts)}}}"


_Kind = _Plain | _CPUs | _List | _Map | _Struct


def _typed(kind: type, value: Any, go: str) -> Any:
    if not isinstance(value, kind):
        raise FieldsError(f"{_json(value)} is not a {go}")
    return value


_TEXT = _Plain("string", "")
_TYPE = _Plain("v1.ResourceName", "")
_UINT = _Plain("uint64", 0)
_INT = _Plain("int", 0)
_POLICY = {"policyName": ("PolicyName", _TEXT)}
_CHECKSUM = {CHECKSUM: ("Checksum", _Plain("checksum.Checksum", 0))}


def _cpu(entries: _Kind, more: Mapping[str, tuple[str, _Kind]]) -> _Struct:
    own: Mapping[str, tuple[str, _Kind]] = {
        "defaultCpuSet": ("DefaultCPUSet", _TEXT),
        "entries": ("Entries", entries),
    }
    fields = {**_POLICY, **own, **more, **_CHECKSUM}
    return _Struct("state.CPUManagerCheckpoint", fields, "(*state.CPUManagerCheckpoint)")


_BY_ID = _Map("map[string]string", _TEXT, made=True)
_BY_POD = _Map("map[string]map[string]string", _Map("map[string]string", _TEXT), made=True)
_POD_CPUS = _Struct("state.PodEntry", {"cpuSet": ("CPUSet", _CPUs())}, "")
_POD_CPU_ENTRIES = _Map("state.PodCPUAssignments", _POD_CPUS, made=True)

_BLOCK = _Struct(
    "state.Block",
    {
        "numaAffinity": ("NUMAAffinity", _List("[]int", _INT)),
        "type": ("Type", _TYPE),
        "size": ("Size", _UINT),
    },
    "",
)
_BLOCKS = _List("[]state.Block", _BLOCK)
_TABLE = _Struct(
    "state.MemoryTable",
    {
        "total": ("TotalMemSize", _UINT),
        "systemReserved": ("SystemReserved", _UINT),
        "allocatable": ("Allocatable", _UINT),
        "reserved": ("Reserved", _UINT),
        "free": ("Free", _UINT),
    },
)
_NODE = _Struct(
    "state.NUMANodeState",
    {
        "numberOfAssignments": ("NumberOfAssignments", _INT),
        "memoryMap": ("MemoryMap", _Map("map[v1.ResourceName]*state.MemoryTable", _TABLE)),
        "cells": ("Cells", _List("[]int", _INT)),
    },
)
_POD_MEMORY = _Struct("state.PodEntry", {"memoryBlocks": ("MemoryBlocks", _BLOCKS)}, "")


def _memory(more: Mapping[str, tuple[str, _Kind]]) -> _Struct:
    assigned = _Map("map[string][]state.Block", _BLOCKS)
    own: Mapping[str, tuple[str, _Kind]] = {
        "machineState": ("MachineState", _Map("state.NUMANodeMap", _NODE, True, made=True)),
        "entries": ("Entries", _Map("state.ContainerMemoryAssignments", assigned, made=True)),
    }
    fields = {**_POLICY, **own, **more, **_CHECKSUM}
    return _Struct("state.MemoryManagerCheckpoint", fields, "(*state.MemoryManagerCheckpoint)")


def _structure(fields: Mapping[str, Any]) -> _Struct:
    """The structure that a kubelet reads such fields into.

    ``machineState`` is the Memory Manager's alone. Of the CPU Manager's formats the first has a
    text for each entry, the third has ``podEntries``.
    """
    with_pods = "podEntries" in fields
    if "machineState" in fields:
        pods = _Map("state.PodMemoryAssignments", _POD_MEMORY, made=True)
        return _memory({"podEntries": ("PodEntries", pods)} if with_pods else {})
    entries = _typed(dict, fields.get("entries") or {}, _BY_ID.go)
    by_id = any(isinstance(one, str) for one in entries.values())
    return _cpu(
        _BY_ID if by_id else _BY_POD,
        {"podEntries": ("PodEntries", _POD_CPU_ENTRIES)} if with_pods else {},
    )


def text(fields: Mapping[str, Any]) -> str:
    """The file with these fields in their order, as compact as a kubelet writes it.

    The checksum follows the fields that it is of, unless they have one: a number is written as it
    stands, and None leaves the checksum out. ``data`` may be fields, of which the text is written,
    or a text, or anything that should not be there; its checksum likewise.

    Raises:
        FieldsError: a checksum is not said, and what it is of has none.
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
    """The fields in the format of a file: where that has a second part, ``data`` says the same.

    What pods have as a whole is in the second part alone.
    """
    if DATA in fields or f'"{DATA}":' not in (content or ""):
        return fields
    data = {name: one for name, one in fields.items() if name != CHECKSUM}
    return {name: one for name, one in fields.items() if name != _PODS} | {DATA: data}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def checksum(fields: Mapping[str, Any], version: str = "") -> int:
    """The checksum of the structure with these fields; `version` ends the structure's name.

    Raises:
        FieldsError: no structure of the kubelet has such fields.
    """
    shown = _structure(fields).shown(fields)
    return fnv1a_32(shown.replace("Checkpoint)", f"Checkpoint{version})", 1).encode())


def data_checksum(data: Any) -> int:
    """The checksum of a text by itself.

    Raises:
        FieldsError: it is no text.
    """
    return fnv1a_32(f"(string){_typed(str, data, 'string')}".encode())
