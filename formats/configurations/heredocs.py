"""Files that a shell script writes with here-documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEREDOC = re.compile(
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)[^\n]*\n"
    r"(?P<body>.*?)^[ \t]*(?P=end)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


def bodies(text: str) -> Iterator[str]:
    """Yields the here-documents, each after as many empty lines as precede it in the text."""
    for found in _HEREDOC.finditer(text):
        yield "\n" * text.count("\n", 0, found.start("body")) + found["body"]


def without_bodies(text: str) -> str:
    """Returns a text with empty lines in place of the here-documents."""
    return _HEREDOC.sub(lambda match: "\n" * match[0].count("\n"), text)
