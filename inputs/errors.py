"""Errors about users' input: the location, the problem and a fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

PathTuple = tuple[str | int, ...]
"""A field of a document, as the steps that lead to it."""

MAX_SHOWN = 1000
"""Maximum number of characters of each part of a message."""


class DocumentError(ValueError):
    """A file, or a document in it, is invalid; describes where, why, and how to fix it.

    Attributes:
        file: the file's name as the user gave it, or ``<text>``.
        line: line number from 1; 0 if the error is not about a particular line.
        field: the field as a dotted path (``nodes[2].memory``), or ``""``.
        message: the problem.
        fix: how to fix it, or ``""``.
    """

    def __init__(self, file: str, line: int, field: str, message: str, fix: str = "") -> None:
        self.file = file
        self.line = line
        self.field = shorten(field)
        self.message = shorten(message)
        self.fix = shorten(fix)
        where = f"{file}:{line}" if line else file
        about = f"{self.field}: " if field else ""
        super().__init__(f"{where}: {about}{self.message}" + (f" ({self.fix})" if fix else ""))


class DocumentErrors(ValueError):  # noqa: N818 - several of them
    """Several errors about documents; the message has one line for each.

    Attributes:
        errors: the errors.
    """

    def __init__(self, errors: Sequence[DocumentError]) -> None:
        """Creates the error; its message includes the first `MAX_LINES` errors."""
        self.errors = tuple(errors)
        lines = [str(one) for one in self.errors[:MAX_LINES]]
        if len(self.errors) > MAX_LINES:
            lines.append(f"... and {len(self.errors) - MAX_LINES} more")
        super().__init__("\n".join(lines))


MAX_LINES = 100
"""Maximum errors in one message."""


def shorten(text: str) -> str:
    """Cuts a long text, and appends the number of characters left out."""
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}... and {plural(len(text) - MAX_SHOWN, 'more character')}"


def dotted_path(path: PathTuple) -> str:
    """Formats a path: ``nodes[2].memory``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
