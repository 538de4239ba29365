"""Derived mutants that no case catches, grouped by the reason, in ``survivors.yaml``."""

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
    """Mutants that survive for the same reason, which is a sentence."""

    why: str
    mutants: tuple[str, ...]


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The survivors by kind.

    Attributes:
        equivalent: they answer as their rule does, whatever is asked.
        unspecified: they answer otherwise where no document says what is right.
    """

    equivalent: tuple[_Group, ...]
    unspecified: tuple[_Group, ...]


@cache
def kinds() -> dict[str, str]:
    """The kind of every survivor, by the id of the mutant.

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
    """What is wrong with the list, given the mutants that survived among those played."""
    for mutant in survivor_ids:
        if mutant not in kinds():
            yield f"SURVIVED {mutant}"
    for mutant in kinds():
        if mutant in played_ids and mutant not in survivor_ids:
            yield f"caught, though it is listed as a survivor: {mutant}"


def summary() -> str:
    """How many survivors there are of each kind."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds().values()).items()))
