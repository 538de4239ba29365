"""Files inside a file: texts in YAML strings, and data URLs."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from numaproof.inputs import door
from numaproof.inputs.documents import Document, DocumentError, PathTuple
from numaproof.inputs.streams import split_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST = re.compile(r"(?<=first in line )[0-9]+$")
"""The line of the first of two equal keys, at the end of a message."""


def inner_lines(content: str, text: str, first: int) -> list[int]:
    """Returns the line of a file where each line of a text inside it is written.

    Looks for the lines below line `first`, where the text starts. Lines that are not there, such as
    those of an encoded text, get the line of the one before.
    """
    outer = text.splitlines()
    found, at = [], first - 1
    for line in content.splitlines() or [""]:
        wanted = line.strip()
        # A quoted string can have an empty line for each line break, and folded lines.
        ahead = range(at, min(at + 4, len(outer)))
        at = next((n for n in ahead if wanted and wanted in outer[n]), at)
        found.append(at + 1)
        at += bool(wanted) and at < len(outer) and wanted in outer[at]
    return found


def inner_documents(
    document: Document, path: PathTuple, content: str, text: str
) -> Sequence[Document]:
    """Returns the mappings among the YAML documents in a string at a path.

    They have the lines of the whole file, whose text is `text`.

    Raises:
        DocumentError: the string is not YAML.
    """
    file, first = document.locate(path)
    lines = inner_lines(content, text, first)
    try:
        found = [one for one in split_documents(content, file) if isinstance(one.data, dict)]
    except DocumentError as error:

        def outer(line: int) -> int:
            return lines[min(line, len(lines)) - 1]

        line = outer(error.line) if error.line else first
        message = _FIRST.sub(lambda match: str(outer(int(match[0]))), error.message)
        raise DocumentError(file, line, error.field, message, error.fix) from None
    return [one.at_lines(lines) for one in found]


def decode_url(document: Document, path: PathTuple, url: str, compression: str = "") -> str:
    """Returns the text in a data URL (RFC 2397).

    Raises:
        DocumentError: it is another URL, or the data are damaged.
    """
    head, separator, data = url.partition(",")
    if not head.startswith("data:") or not separator:
        raise document.error(path, "not a data URL", "use a file that contains its data")
    content = unquote_to_bytes(data)
    if head.endswith(";base64"):
        return decode_base64(document, path, content, compression)
    return _unpack(document, path, content, compression)


def decode_base64(
    document: Document, path: PathTuple, data: str | bytes, compression: str = ""
) -> str:
    """Returns the text in base64, which may be compressed.

    Raises:
        DocumentError: the data are damaged.
    """
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise document.error(path, f"not base64: {error}") from None
    return _unpack(document, path, content, compression)


def _unpack(document: Document, path: PathTuple, content: bytes, compression: str) -> str:
    file, line = document.locate(path)
    try:
        if compression == "gzip" or content.startswith(door.GZIP):
            content = door.unpack_gzip(content, file, most=door.DOCUMENT_BYTES)
        return door.text(content, file)
    except DocumentError as error:
        raise DocumentError(file, line, "", error.message, error.fix) from None
