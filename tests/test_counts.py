"""Counts and nouns agree: `plural` joins them wherever a count may be one."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDERS = ("cli", "conformance", "fakesys", "campaign", "inputs", "plugin", "reports", "simulation")

PROFILES = {ROOT / "fakesys/cache_rows.py"}
"""Code that writes words of profiles, such as ``1 cores``."""

NOUNS = re.compile(r" (?:[a-z]+ )?([A-Za-z]{2,}s)\b")
NO_NOUNS = {"is", "as", "has", "was", "less", "this", "does", "its", "ms"}
"""Words that look like plurals."""

LIMITS = re.compile(r"(more|larger|longer) than|too many|the limit is|cut after|MAX_")
"""Texts with a number beyond a limit, which is never one."""


def counts(file: Path) -> Iterator[str]:
    """Yields texts that put a bare number before a plural noun."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant)):
                continue
            noun = NOUNS.match(str(after.value))
            if noun and noun[1] not in NO_NOUNS and is_count(value):
                text = ast.unparse(node)
                if not LIMITS.search(text):
                    yield f"{file.relative_to(ROOT)}:{value.lineno}: {text}"


def is_count(value: ast.FormattedValue) -> bool:
    """Returns whether a value is a length or a number with separators."""
    shown = value.value
    if isinstance(shown, ast.BinOp):
        shown = shown.left
    if isinstance(shown, ast.Call):
        return isinstance(shown.func, ast.Name) and shown.func.id == "len"
    return value.format_spec is not None and ast.unparse(value.format_spec) == "f','"


def test_a_count_of_one_is_not_in_the_plural() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    read = [file for file in files if file not in PROFILES]
    found = [text for file in read for text in counts(file)]
    assert not found, "\n".join(found)


def test_counts_have_separators_and_nouns_agree() -> None:
    assert [plural(count, "case run") for count in (0, 1, 1234)] == [
        *("0 case runs", "1 case run", "1,234 case runs"),
    ]
