"""Dumps structures like Go's package ``spew``, as input for checksums."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang.decoding import Array, Fields, Map, Signed, Text, Unsigned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.golang.decoding import Kind

_NIL = "<nil>"

_NAMES = {
    "defaultCpuSet": "DefaultCPUSet",
    "numaAffinity": "NUMAAffinity",
    "total": "TotalMemSize",
}
"""The Go names of fields that are not the JSON name with an initial capital."""


@cache
def dumper(kind: Kind) -> Callable[[Any], str]:
    """Returns the function that dumps values of a kind.

    The fields of a structure are preceded by their types, except that ``spew`` omits the type after
    a map whose last value is a nil pointer.
    """
    match kind:
        case Fields(dump=own) if own is not None:
            return _or_nil(own)
        case Fields(pointer=True):
            dump = dumper_of_fields(kind.fields)
            return _or_nil(lambda value: f"<*>{dump(value)}")
        case Fields():
            return dumper_of_fields(kind.fields)
        case Map():
            dump = dumper(kind.values)
            return _or_nil(
                lambda value: (
                    f"map[{' '.join([f'{key}:{dump(value[key])}' for key in sorted(value)])}]"
                )
            )
        case Array():
            dump = dumper(kind.values)
            return _or_nil(lambda value: f"[{' '.join(map(dump, value))}]")
        case _:
            return _or_nil(str)


def _or_nil(dump: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: _NIL if value is None else dump(value)


def dumper_of_fields(fields: Mapping[str, Kind]) -> Callable[[Any], str]:
    if all(isinstance(kind, Text | Unsigned | Signed) for kind in fields.values()):
        form = " ".join(f"{_label(name)}:({kind.go})%s" for name, kind in fields.items())
        values_of = itemgetter(*fields)
        return lambda value: f"{{{form % values_of(value)}}}"
    parts = [
        (name, _label(name), f"({kind.go})", dumper(kind), _has_pointers(kind))
        for name, kind in fields.items()
    ]

    def dump(structure: Mapping[str, Any]) -> str:
        texts = []
        is_typed = True
        for name, label, go, dump_value, has_pointers in parts:
            value = structure[name]
            texts.append(f"{label}:{go if is_typed else ''}{dump_value(value)}")
            is_typed = not (has_pointers and value and value[max(value)] is None)
        return f"{{{' '.join(texts)}}}"

    return dump


def _has_pointers(kind: Kind) -> bool:
    return isinstance(kind, Map) and isinstance(kind.values, Fields) and kind.values.pointer


def _label(name: str) -> str:
    return _NAMES.get(name) or name[0].upper() + name[1:]
