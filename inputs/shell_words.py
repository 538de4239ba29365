"""Quotes command lines for a shell, whatever file names they contain."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def quote_words(words: Iterable[str]) -> str:
    """Quotes words for a shell as one line of printable text; file names need not be UTF-8."""
    return " ".join(map(_quote_word, words))


def _quote_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escape_byte, os.fsencode(word)))}'"


def _escape_byte(byte: int) -> str:
    shown = chr(byte)
    return shown if shown.isascii() and (shown.isalnum() or shown in "-_./ ") else f"\\x{byte:02x}"
