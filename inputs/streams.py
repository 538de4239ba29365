"""Several YAML documents in one text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from numaproof.inputs import documents
from numaproof.inputs.documents import Document, DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DOCUMENTS = 10_000
"""Maximum number of documents in a file; a node has a few hundred pods."""

MAX_PROBLEMS = 100
"""Maximum number of problems to report in a document and overall, because suggestions are slow."""

_MARK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
"""Separates documents wherever it starts a line, even inside a scalar (YAML 1.2, section 9.1.2)."""


_NEXT_VALUE = re.compile(r"\}\s*\n\{")
"""The end of a JSON object in front of another one, as in JSON Lines."""


def _values(text: str) -> list[str] | None:
    """Splits JSON objects that follow each other; None if the text is something else."""
    decode = json.JSONDecoder().raw_decode
    found: list[str] = []
    start = 0
    end = len(text) - len(text.lstrip())
    while end < len(text):
        if text[end] != "{":
            return None
        try:
            _, end = decode(text, end)
        except (ValueError, RecursionError):
            return None
        end += len(text) - end - len(text[end:].lstrip())
        found.append(text[start:end])
        start = end
    return found


def split_documents(
    text: str,
    file: str,
    errors: list[DocumentError] | None = None,
    limits: documents.Limits = documents.HANDWRITTEN,
) -> Iterator[Document]:
    """Yields the non-empty documents in a file's text, with the line numbers of the file.

    Args:
        text: the text.
        file: the file's name.
        errors: collects errors, so that reading continues after an unreadable document.
        limits: how large the file can be.

    Raises:
        DocumentError: a document cannot be read and `errors` is None, or there are too many.
    """
    before = values = 0
    parts = _values(text) if _NEXT_VALUE.search(text) else None
    for number, part in enumerate(parts or _MARK.split(text)):
        if number > MAX_DOCUMENTS:
            message = f"more than {MAX_DOCUMENTS:,} documents"
            raise DocumentError(file, before + 1, "", message, "split the file")
        first, before = before, before + part.count("\n")
        try:
            document = documents.load(part, file=file, aliases=True, before=first, limits=limits)
        except DocumentError as error:
            if errors is None:
                raise
            errors.append(error)
            if len(errors) >= MAX_PROBLEMS:
                return
            continue
        values += document.values
        if values > limits.values:
            message = f"more than {limits.values:,} values in one file"
            raise DocumentError(file, before, "", message, "split the file")
        if document.data is not None:
            yield document
