"""Type errors name file, line and field, and what is expected."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from numaproof.inputs import documents, typed


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """The type of the documents below."""

    level: Literal["low", "high"] = "low"
    hints: dict[Literal["cpu", "memory"], Any] | None = None
    counts: dict[str, int] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level: lowest\n", "f.yaml:1: level: invalid enum value 'lowest' (use one of: low, high)"),
        (
            "level: low\nhints:\n  cpu: []\n  cpux: []\n",
            "f.yaml:4: hints.cpux: invalid enum value 'cpux' (use one of: cpu, memory)",
        ),
        ("counts:\n  a: 1\n  b: x\n", "f.yaml:3: counts.b: expected `int`, got `str`"),
        ("levels: low\n", "f.yaml:1: levels: unknown key 'levels' (did you mean 'level'?)"),
    ],
)
def test_type_errors_name_their_location(text: str, message: str) -> None:
    with pytest.raises(documents.DocumentError) as caught:
        typed.convert(documents.load(text, file="f.yaml"), Wanted)
    assert str(caught.value) == message
