"""docs/invariants.md lists every invariant."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "invariants.md").read_text("utf-8")


def forms() -> Iterator[re.Pattern[str]]:
    """The pattern of names in the code that reports violations."""
    for module in (ROOT / "conformance" / "judging" / "invariants").glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Violation"), args=[name, *_]):
                    yield from map(re.compile, names(name))


def names(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(name)):
            return [re.escape(name)]
        case ast.IfExp(body=body, orelse=other):
            return [*names(body), *names(other)]
        case ast.JoinedStr(values=values):
            parts = ("".join(names(one)) or r"[a-z-]*" for one in values)
            return ["".join(parts)]
        case _:
            return []


def test_every_invariant_is_on_the_page() -> None:
    listed = re.findall(r"`([a-z-]+-[a-z-]+)`", PAGE)
    every = [*forms()]
    assert len(every) > 50
    assert [one.pattern for one in every if not any(map(one.fullmatch, listed))] == []
