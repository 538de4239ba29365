"""Dumps structures like Go's package ``spew``, as input for checksums."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang.decoding import Array, Fields, Map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.golang.decoding import Kind

_NIL = "<nil>"

_NAMES = {
    "defaultCpuSet": "DefaultCPUSet",
    "numaAffinity": "NUMAAffinity",
    "total": "TotalMemSize",
}
"""The Go names of fields that are not the JSON name with an initial capital."""


def dump(fields: Mapping[str, Kind], content: Mapping[str, Any]) -> str:
    """Dumps a structure with these fields and values.

    Values are preceded by their types, except that ``spew`` omits the type after a map whose last
    value is a nil pointer.
    """
    parts = []
    typed = True
    for name, kind in fields.items():
        value = content[name]
        text = value if isinstance(value, int | str) else _dump_value(kind, value)
        parts.append(f"{_label(name)}:({kind.go}){text}" if typed else f"{_label(name)}:{text}")
        typed = not (isinstance(kind, Map) and value and _ends_without_pointer(kind, value))
    return f"{{{' '.join(parts)}}}"


@cache
def _label(name: str) -> str:
    return _NAMES.get(name) or name[0].upper() + name[1:]


def _ends_without_pointer(kind: Map, value: Mapping[Any, Any]) -> bool:
    pointers = isinstance(kind.values, Fields) and kind.values.pointer
    return pointers and value[max(value)] is None


def _dump_value(kind: Kind, value: Any) -> str:
    if value is None:
        return _NIL
    if isinstance(kind, Map):
        parts = [f"{key}:{_dump_value(kind.values, value[key])}" for key in sorted(value)]
        return f"map[{' '.join(parts)}]"
    if isinstance(kind, Array):
        return f"[{' '.join([_dump_value(kind.values, one) for one in value])}]"
    if isinstance(kind, Fields):
        if kind.dump:
            return kind.dump(value)
        return f"{'<*>' if kind.pointer else ''}{dump(kind.fields, value)}"
    return str(value)
