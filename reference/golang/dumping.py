"""Structures as Go's package ``spew`` prints them, which checksums are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.golang.decoding import Fields, Keyed, Listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.golang.decoding import Kind

_NIL = "<nil>"


def dump(fields: Mapping[str, Kind], content: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """A structure with these fields and their values.

    `names` are those of fields in Go, where they are not the name in JSON with a capital. Types
    stand in front of values; ``spew`` forgets one after a map that ends with no pointer.
    """
    parts = []
    typed = True
    for name, kind in fields.items():
        value = content[name]
        shown = names.get(name) or name[0].upper() + name[1:]
        text = value if isinstance(value, int | str) else _dumped(kind, value, names)
        parts.append(f"{shown}:({kind.go}){text}" if typed else f"{shown}:{text}")
        typed = not (isinstance(kind, Keyed) and value and _ends_without_pointer(kind, value))
    return f"{{{' '.join(parts)}}}"


def _ends_without_pointer(kind: Keyed, value: Mapping[Any, Any]) -> bool:
    pointers = isinstance(kind.values, Fields) and kind.values.pointer
    return pointers and value[max(value)] is None


def _dumped(kind: Kind, value: Any, names: Mapping[str, str]) -> str:
    if value is None:
        return _NIL
    if isinstance(kind, Keyed):
        parts = [f"{key}:{_dumped(kind.values, value[key], names)}" for key in sorted(value)]
        return f"map[{' '.join(parts)}]"
    if isinstance(kind, Listed):
        return f"[{' '.join([_dumped(kind.values, one, names) for one in value])}]"
    if isinstance(kind, Fields):
        if kind.dumped:
            return kind.dumped(value)
        return f"{'<*>' if kind.pointer else ''}{dump(kind.fields, value, names)}"
    return str(value)
