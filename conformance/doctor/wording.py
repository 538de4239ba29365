"""The messages of `numaproof doctor`, from ``wording.yaml``."""

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
"""The maximum length of standard error in a finding."""


class Wording(Written, frozen=True):
    """All messages; ``wording.yaml`` explains them."""

    findings: dict[str, Finding]
    examples: dict[str, Any]
    optional_fields: dict[str, str]
    types: dict[str, tuple[str, Any]]


def read_data(name: str, kind: type[T]) -> T:
    """Reads a file of this package as a typed value."""
    file = resources.files("numaproof.conformance") / "doctor" / name
    document = documents.load(file.read_text(encoding="utf-8"), file=name, aliases=True)
    return typed.convert(document, kind)


@cache
def wording() -> Wording:
    return read_data("wording.yaml", Wording)


def finding(name: str, /, *, log: str = "", advice: bool = False, **values: Any) -> Finding:
    """Creates a finding.

    Args:
        name: the finding's name in ``wording.yaml``.
        log: the program's standard error, if it may show the cause.
        advice: whether the finding is only advice here.
        values: the values to insert into the message.
    """
    found = wording().findings[name]
    return msgspec.structs.replace(
        found,
        wrong=cut(Template(found.wrong).substitute(values)),
        right=Template(found.right).substitute(values),
        advice=found.advice or advice,
        log=log[-_LOG:],
    )
