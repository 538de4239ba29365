"""Derived mutants that no case catches, grouped by reason in ``survivors.yaml``."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.inputs import documents, typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_FILE = Path(__file__).with_name("survivors.yaml")


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mutants that survive for the same reason."""

    why: str
    mutants: tuple[str, ...]


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The survivors by kind.

    Attributes:
        equivalent: mutants that always answer like the original rule.
        unspecified: mutants whose different answers contradict no document.
    """

    equivalent: tuple[_Group, ...]
    unspecified: tuple[_Group, ...]


@cache
def kinds() -> dict[str, str]:
    """Returns the kind of each survivor, by the mutant's id.

    Raises:
        documents.DocumentError: the file is damaged.
    """
    listed = typed.convert(documents.load(_FILE), _Survivors)
    return {
        mutant: kind
        for kind in listed.__struct_fields__
        for group in getattr(listed, kind)
        for mutant in group.mutants
    }


def problems(survivor_ids: Collection[str], played_ids: Collection[str]) -> Iterator[str]:
    """Yields the differences between the listed survivors and those found in a run."""
    for mutant in survivor_ids:
        if mutant not in kinds():
            yield f"SURVIVED {mutant}"
    for mutant in kinds():
        if mutant in played_ids and mutant not in survivor_ids:
            yield f"caught, but listed as a survivor: {mutant}"


def summary() -> str:
    """Returns the number of survivors of each kind."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds().values()).items()))
