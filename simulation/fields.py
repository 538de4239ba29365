"""The fields allowed in kubelet configurations, pods and workloads.

They are listed in ``fields.txt`` next to this module. (Kubernetes API reference; "Kubelet
Configuration (v1beta1)".)
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from numaproof.inputs.names import suggestion
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.inputs.documents import PathTuple


class _Shape(NamedTuple):
    """The Python types that represent a type, the error for other values, and a fix."""

    takes: tuple[type, ...]
    message: str
    fix: str


_REFERENCE = "see the Kubernetes API reference"
_LIST = _Shape((list,), "must be a list", _REFERENCE)
_MAPPING = _Shape((dict,), "must be a mapping", _REFERENCE)
_WHOLE = _Shape((int, float), "must be a whole number", "write digits without quotes")
_QUANTITY = _Shape((str, int, float), "must be a quantity", "use a value such as 2, 500m or 1Gi")
_SECONDS = 'use a value such as "10s"'

_SCALARS = {
    "string": _Shape((str,), "must be a string", "write it in quotes"),
    "bool": _Shape((bool,), "must be true or false", "write true or false, without quotes"),
    "int32": _WHOLE,
    "int64": _WHOLE,
    "uint32": _WHOLE,
    "float64": _Shape((int, float), "must be a number", "write it without quotes"),
    "Quantity": _QUANTITY,
    "QuantityValue": _QUANTITY,
    "IntOrString": _Shape((int, str), "must be a number or a string", _REFERENCE),
    "Duration": _Shape((str,), "must be a duration", _SECONDS),
    "TimeOrMetaDuration": _Shape((int, float, str), "must be a duration", _SECONDS),
    "Time": _Shape((str,), "must be a time", 'use a value such as "2026-01-31T12:00:00Z"'),
}


def fits(value: Any, type_: str) -> bool:
    """Whether a plain value has the shape of a type in `table`; null fits every type."""
    shape = _shape(type_)
    if isinstance(value, bool):  # bool is a subclass of int
        return bool in shape.takes
    if isinstance(value, float) and shape is _WHOLE:
        return value.is_integer()
    return value is None or isinstance(value, shape.takes)


def mismatch(type_: str) -> tuple[str, str]:
    """Returns the error for a value that does not fit a type, and a fix."""
    _, message, fix = _shape(type_)
    return message, fix


def _shape(type_: str) -> _Shape:
    return _LIST if type_.startswith("[]") else _SCALARS.get(type_, _MAPPING)


CONFIGURATION = "KubeletConfiguration"


class FieldProblem(msgspec.Struct, frozen=True):
    """An unknown field, or a value of the wrong type.

    Attributes:
        path: the path of the field.
        message: the problem.
        fix: how to fix it.
        unknown: whether the releases lack the field, in which case the kubelet ignores it. It
            refuses values of the wrong type.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str
    unknown: bool = True


class KnownField(msgspec.Struct, frozen=True):
    """The type of a field's value, and the releases that have the field."""

    type: str
    releases: tuple[str, ...]


@cache
def table() -> Mapping[str, Mapping[str, KnownField]]:
    """Returns the fields of each type, by name."""
    text = Path(__file__).with_name("fields.txt").read_text(encoding="ascii")
    head, *lines = text.split("\n\n")[1].splitlines()
    releases = tuple(head.split()[1:])
    types: dict[str, dict[str, KnownField]] = {}
    for line in lines:
        if not line.startswith(" "):
            fields = types[line] = {}
            continue
        name, value, *spans = line.split()
        having = tuple(_expand_spans(spans[0], releases)) if spans else releases
        if name in fields:  # its type differs between releases
            having = (*fields[name].releases, *having)
        fields[name] = KnownField(value, having)
    return types


def _expand_spans(spans: str, releases: Sequence[str]) -> Iterator[str]:
    for span in spans.split(","):
        first, _, last = span.partition("-")
        yield from releases[releases.index(first) : releases.index(last or first) + 1]


def of(type_: str, releases: Sequence[str]) -> frozenset[str]:
    """Returns the fields that a type has in any of these releases."""
    known = table()[type_].items()
    return frozenset(name for name, field in known if set(releases) & set(field.releases))


def problems(
    value: Any, type_: str, releases: Sequence[str], path: PathTuple = (), outer: str = ""
) -> Iterator[FieldProblem]:
    """Yields the unknown fields of a value and the fields with values of the wrong type.

    Null is a value of every type, as in Go.

    Args:
        value: the value.
        type_: a type in the table, ``[]T`` for a list, ``map[]T`` for a mapping with any keys.
        releases: the releases whose kubelets read the value.
        path: the path of the value.
        outer: the type of the mapping around the value; can be empty.
    """
    if value is None:
        return
    if not fits(value, type_):
        yield FieldProblem(path, *mismatch(type_), unknown=False)
    elif type_.startswith("[]"):
        for number, item in enumerate(value):
            yield from problems(item, type_[2:], releases, (*path, number))
    elif type_.startswith("map[]"):
        for key, item in value.items():
            yield from problems(item, type_[5:], releases, (*path, key))
    elif type_ in table():
        yield from _in_mapping(value, type_, releases, path, outer)


def _in_mapping(
    value: Mapping[str, Any], type_: str, releases: Sequence[str], path: PathTuple, outer: str
) -> Iterator[FieldProblem]:
    known = table()[type_]
    for name, item in value.items():
        field = known.get(name)
        # A status comes from a cluster, which can run another release.
        having = RELEASES if name == "status" else releases
        if field is None:
            yield FieldProblem((*path, name), "unknown field", _fix(name, item, type_, path, outer))
        elif set(having).isdisjoint(field.releases):
            yield _of_other_releases((*path, name), field, releases)
        else:
            yield from problems(item, field.type, having, (*path, name), type_)


def _fix(name: str, item: Any, type_: str, path: PathTuple, outer: str) -> str:
    """Returns how to fix an unknown field: a similar name, or the place where it exists."""
    known = table()[type_]
    similar = suggestion(name, (one for one, other in known.items() if fits(item, other.type)))
    if similar.startswith("did you mean"):
        return similar
    if place := _place_inside(name, item, type_):
        return f"move it into {place}"
    if outer and (field := table()[outer].get(name)) and fits(item, field.type):
        return f"move it out of {path[-1]}"
    if isinstance(item, dict) and item.keys() & known.keys():
        return f"move the fields in {name} out of it"
    # A section may have another name; a plain value is rarely that of another field.
    return similar if isinstance(item, dict) else "remove it"


_WRAPPERS = ("metadata", "spec", "template", "jobTemplate", "resources", "securityContext")
"""Fields whose fields are often written next to them."""


def _place_inside(name: str, item: Any, type_: str) -> str:
    """Returns where inside a type a field exists, in one of `_WRAPPERS`; empty if nowhere."""
    for wrapper in _WRAPPERS:
        inner = table()[type_].get(wrapper)
        if inner is None or inner.type not in table():
            continue
        field = table()[inner.type].get(name)
        if field and fits(item, field.type):
            return wrapper
        if deeper := _place_inside(name, item, inner.type):
            return f"{wrapper}.{deeper}"
    return ""


def _of_other_releases(path: PathTuple, field: KnownField, releases: Sequence[str]) -> FieldProblem:
    asked, others = " and ".join(releases), field.releases
    span = others[0] if len(others) == 1 else f"{others[0]} to {others[-1]}"
    message = f"not a field in Kubernetes {asked}, only in {span}"
    return FieldProblem(path, message, "remove it, or choose another release")
