"""Derived mutants that no case catches, each with the reason, in ``survivors.yaml``."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.inputs import documents, fitting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_FILE = Path(__file__).with_name("survivors.yaml")


class Survivor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that survives.

    Attributes:
        mutant: its id.
        kind: `equivalent` if it answers as the rule does, whatever is asked; `unspecified` if it
            differs where no document says what is right; `open` while nobody knows.
        why: the reason, in a sentence; none while it is open.
    """

    mutant: str
    kind: Literal["equivalent", "unspecified", "open"]
    why: str = ""


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    survivors: tuple[Survivor, ...]


@cache
def by_mutant() -> dict[str, Survivor]:
    """The survivors by their mutants.

    Raises:
        documents.DocumentError: the file is damaged.
    """
    document = documents.load(_FILE)
    return {one.mutant: one for one in fitting.convert(document, _Survivors).survivors}


def problems(missed: Collection[str], played: Collection[str]) -> Iterator[str]:
    """What is wrong with the list, given the mutants that survived among those played."""
    for mutant in missed:
        if mutant not in by_mutant():
            yield f"SURVIVED {mutant}"
    for mutant in by_mutant():
        if mutant in played and mutant not in missed:
            yield f"caught, though it is listed as a survivor: {mutant}"


def summary() -> str:
    """How many survivors there are of each kind."""
    counts = Counter(one.kind for one in by_mutant().values())
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
