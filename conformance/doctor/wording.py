"""What the doctor says: the findings of ``wording.yaml``, filled in."""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import Template
from typing import Any, TypeVar

import msgspec

from numaproof.conformance.cases.schema import Written
from numaproof.conformance.execution.truncation import cut
from numaproof.inputs import documents, typed
from numaproof.protocol.diagnosis import Finding  # noqa: TC001 - msgspec reads it

T = TypeVar("T")

_LOG = 1500
"""Characters of a program's standard error that a finding shows."""


class Wording(Written, frozen=True):
    """All texts; ``wording.yaml`` explains them."""

    findings: dict[str, Finding]
    examples: dict[str, Any]
    optional_fields: dict[str, str]
    types: dict[str, tuple[str, Any]]


def read_data(name: str, kind: type[T]) -> T:
    """A file of this package as a typed value."""
    file = resources.files("numaproof.conformance") / "doctor" / name
    document = documents.load(file.read_text(encoding="utf-8"), file=name, aliases=True)
    return typed.convert(document, kind)


@cache
def wording() -> Wording:
    """The texts."""
    return read_data("wording.yaml", Wording)


def finding(name: str, /, *, log: str = "", advice: bool = False, **values: Any) -> Finding:
    """A finding by its name.

    Args:
        name: in ``wording.yaml``.
        log: the program's standard error, where that may tell why.
        advice: whether it is advice here, although it is not everywhere.
        values: what to fill in.
    """
    found = wording().findings[name]
    return msgspec.structs.replace(
        found,
        wrong=cut(Template(found.wrong).substitute(values)),
        right=Template(found.right).substitute(values),
        advice=found.advice or advice,
        log=log[-_LOG:],
    )
