"""Adding a case to a case file without touching anything else in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import lists, loading, writing
from numaproof.inputs import documents
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
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
    item = writing.item(case, **_said(case, documents.load(text, file=file).data))
    made = lists.with_items(text, "cases", item, file, "a case")
    if not _reads_as(made, (*before, case)):
        raise documents.DocumentError(
            file, 0, "", "a case can't be added to this file", "add to another file, --into FILE"
        )
    return made


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
