"""The fields that people may write in a kubelet's configuration, in pods and in workloads.

They are in the table ``fields.txt`` next to this module. (Kubernetes API reference; "Kubelet
Configuration (v1beta1)".)
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.releases import RELEASES
from numaproof.simulation import shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.inputs.documents import PathTuple

CONFIGURATION = "KubeletConfiguration"

MOST_LISTED = 10
"""Known fields that a message lists where none is like the unknown one."""


class FieldProblem(msgspec.Struct, frozen=True):
    """A field that nothing reads, or whose value is not of the field's type.

    Attributes:
        path: where it is.
        message: what is wrong.
        fix: what to do.
        unknown: whether no release has the field, so that a kubelet passes over it; a value of the
            wrong type is refused.
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
    """The fields of each type, by name."""
    text = Path(__file__).with_name("fields.txt").read_text(encoding="ascii")
    head, *lines = text.split("\n\n")[1].splitlines()
    releases = tuple(head.split()[1:])
    types: dict[str, dict[str, KnownField]] = {}
    for line in lines:
        if not line.startswith(" "):
            fields = types[line] = {}
            continue
        name, value, *spans = line.split()
        having = tuple(_spanned(spans[0], releases)) if spans else releases
        if name in fields:  # its type differs between releases
            having = (*fields[name].releases, *having)
        fields[name] = KnownField(value, having)
    return types


def _spanned(spans: str, releases: Sequence[str]) -> Iterator[str]:
    for span in spans.split(","):
        first, _, last = span.partition("-")
        yield from releases[releases.index(first) : releases.index(last or first) + 1]


def of(type_: str, releases: Sequence[str]) -> frozenset[str]:
    """The fields that a type has in any of these releases."""
    known = table()[type_].items()
    return frozenset(name for name, field in known if set(releases) & set(field.releases))


def problems(
    value: Any, type_: str, releases: Sequence[str], path: PathTuple = ()
) -> Iterator[FieldProblem]:
    """What is wrong with the names of a value's fields and with the types of their values.

    Null is a value of every type, as in Go.

    Args:
        value: what a document has at the path.
        type_: a type of the table, ``[]T`` for a list, ``map[]T`` for a mapping with any keys.
        releases: the releases that are to read it.
        path: where the value is.
    """
    if value is None:
        return
    if not shapes.fits(value, type_):
        yield FieldProblem(path, *shapes.mismatch(type_), unknown=False)
    elif type_.startswith("[]"):
        for number, item in enumerate(value):
            yield from problems(item, type_[2:], releases, (*path, number))
    elif type_.startswith("map[]"):
        for key, item in value.items():
            yield from problems(item, type_[5:], releases, (*path, key))
    elif type_ in table():
        yield from _in_mapping(value, type_, releases, path)


def _in_mapping(
    value: Mapping[str, Any], type_: str, releases: Sequence[str], path: PathTuple
) -> Iterator[FieldProblem]:
    known = table()[type_]
    for name, item in value.items():
        field = known.get(name)
        # What a cluster says of an object need not be of the release that is asked about.
        having = RELEASES if name == "status" else releases
        if field is None:
            like = [one for one, other in known.items() if shapes.fits(item, other.type)]
            yield FieldProblem((*path, name), "unknown field", suggestion(name, like))
        elif set(having).isdisjoint(field.releases):
            yield _of_other_releases((*path, name), field, releases)
        else:
            yield from problems(item, field.type, having, (*path, name))


def _of_other_releases(path: PathTuple, field: KnownField, releases: Sequence[str]) -> FieldProblem:
    asked, others = " and ".join(releases), field.releases
    span = others[0] if len(others) == 1 else f"{others[0]} to {others[-1]}"
    message = f"not a field of Kubernetes {asked}, only of {span}"
    return FieldProblem(path, message, "remove it, or choose another release")


def suggestion(name: str, known: Iterable[str]) -> str:
    """How to fix an unknown name: the known one that is most like it, or the few there are."""
    listed = list(known)
    # Names that differ only in case are alike, and case counts.
    by_folded = {one.casefold(): one for one in listed}
    close = get_close_matches(name.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return f"known: {', '.join(listed)}" if len(listed) <= MOST_LISTED else "remove it"


def is_slip(name: str, known: str) -> bool:
    """Whether a name is a known one but for case, or one letter left out, put in or swapped."""
    one, other = sorted((name.casefold(), known.casefold()), key=len)
    if len(one) == len(other):
        apart = [n for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
        swapped = sorted(one) == sorted(other) and len(apart) == 2  # noqa: PLR2004 - a swap
        return len(apart) <= 1 or swapped
    return len(other) == len(one) + 1 and any(
        other[:n] + other[n + 1 :] == one for n in range(len(other))
    )
