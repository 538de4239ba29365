"""Adding items to a list in a YAML file without touching anything else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from numaproof.inputs import documents

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_items(text: str, key: str, items: str, file: str, what: str) -> str:
    """A text with more items at the end of one of its lists, below an empty line.

    Args:
        text: a mapping in YAML.
        key: of the list in it.
        items: the items as YAML, each with a hyphen in the first column.
        file: the file's name in messages.
        what: what an item is, in messages.

    Raises:
        documents.DocumentError: the list is written in brackets.
    """
    lines = text.splitlines(keepends=True)
    at, column = _place(text, lines, key, file, what)
    ending = "\r\n" if "\r\n" in text else "\n"
    indented = [" " * column + line + ending for line in items.splitlines()]
    gap = [ending] if at and lines[at - 1].strip() else []
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += ending
    rest = [ending, *lines[at:]] if at < len(lines) else []
    return "".join([*lines[:at], *gap, *indented, *rest])


def _place(text: str, lines: Sequence[str], key: str, file: str, what: str) -> tuple[int, int]:
    """The line before which an item is added, and the column of its hyphen."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    keys = {one.value: (one, value) for one, value in root.value}
    _, listed = keys[key]
    if root.flow_style or listed.flow_style or not listed.value:
        raise documents.DocumentError(
            file,
            listed.start_mark.line + 1,
            key,
            f"{what} can't be added to a list in brackets",
            "write its items below each other, or add to another file",
        )
    follows = [one.start_mark.line for one, _ in keys.values()]
    at = min((line for line in follows if line > listed.start_mark.line), default=len(lines))
    # What is written above the next key belongs to that.
    while at < len(lines) and _is_aside(lines[at - 1]):
        at -= 1
    return at, listed.start_mark.column


def _is_aside(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
