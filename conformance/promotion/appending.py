"""Adding a case to a case file without touching anything else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from numaproof.conformance.cases import loading, writing
from numaproof.inputs import documents
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.cases.schema import Case


def appended(text: str, case: Case, file: str) -> str:
    """The text of a case file with one more case at its end, or of a new file.

    The case stays what it is, whatever the defaults of the file are.

    Args:
        text: of the file; empty for a new one.
        case: the case.
        file: the file's name in messages.

    Raises:
        documents.DocumentError: the text is not a table of cases, or none that can be added to.
    """
    if not text:
        return f"cases:\n{writing.item(case)}"
    before = loading.parse(text, file)
    lines = text.splitlines(keepends=True)
    at, column = _place(text, lines, file)
    ending = "\r\n" if "\r\n" in text else "\n"
    added = writing.item(case, **_said(case, documents.load(text, file=file).data))
    indented = [" " * column + line + ending for line in added.splitlines()]
    gap = [ending] if at and lines[at - 1].strip() else []
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += ending
    rest = [ending, *lines[at:]] if at < len(lines) else []
    made = "".join([*lines[:at], *gap, *indented, *rest])
    if not _reads_as(made, (*before, case)):
        raise documents.DocumentError(
            file, 0, "", "a case can't be added to this file", "add to another file, --into FILE"
        )
    return made


def _place(text: str, lines: Sequence[str], file: str) -> tuple[int, int]:
    """The line before which a case is added, and the column of its hyphen."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    keys = {key.value: (key, value) for key, value in root.value}
    _, cases = keys["cases"]
    if root.flow_style or cases.flow_style or not cases.value:
        raise documents.DocumentError(
            file,
            cases.start_mark.line + 1,
            "cases",
            "a case can't be added to a list in brackets",
            "write its cases below each other, or add to another file",
        )
    follows = [key.start_mark.line for key, _ in keys.values()]
    at = min((line for line in follows if line > cases.start_mark.line), default=len(lines))
    # What is written above the next key belongs to that.
    while at < len(lines) and _is_aside(lines[at - 1]):
        at -= 1
    return at, cases.start_mark.column


def _is_aside(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _said(case: Case, data: dict[str, Any]) -> dict[str, Any]:
    """The fields that the case must spell out so that the defaults of the file do not change it."""
    defaults = data.get("defaults") or {}
    said: dict[str, Any] = {}
    taken_away = dict.fromkeys(defaults.get("config") or {}, None)
    if taken_away:
        said["config"] = taken_away
    if defaults.get("kubernetes") and not case.kubernetes:
        said["kubernetes"] = f">= {RELEASES[0]}"
    return said


def _reads_as(text: str, wanted: tuple[Case, ...]) -> bool:
    """Whether all other cases read as before, and the new one as intended."""
    try:
        *others, last = loading.parse(text, "")
    except documents.DocumentError:
        return False
    of_file = {"machines": wanted[-1].machines, "kubernetes": wanted[-1].kubernetes}
    return (*others, msgspec.structs.replace(last, **of_file)) == wanted
