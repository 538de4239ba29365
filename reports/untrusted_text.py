"""Makes untrusted text safe to display.

Untrusted text may contain control characters that drive a terminal, characters that XML forbids,
direction marks and other format characters that disguise text, and GitHub workflow commands. All of
them are shown as code points. Each format escapes its own markup.

`numaproof.reports.safe_streams` applies this module to everything that the command prints. In JSON,
hidden characters become escape sequences instead; see `escape_json`.
"""

from __future__ import annotations

import re

_FORMAT = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"  # soft hyphen, Arabic marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi controls
    "\ufe00-\ufe0f\ufeff\ufff0-\ufffb\ufffe\uffff"  # variation selectors, marks, non-characters
    "\ud800-\udfff"  # lone surrogates
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags
)

_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMAT}]")
"""Invisible characters: controls except tab and line feed, and format characters."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

_COMMAND = re.compile(r"^([ \t]*):(?=:[a-z][a-z-]*(?: [^\n]*)?::)|#(?=#\[[a-z])", re.MULTILINE)
"""The start of a workflow command, such as ``::error::`` or ``##[group]``."""


def visible(text: str) -> str:
    """Replaces every hidden or forbidden character with its code point.

    Bytes that are not UTF-8 become hexadecimal escapes. Tabs and line feeds are kept; carriage
    returns before a line feed are dropped. The result contains only characters that XML 1.0 allows,
    and no workflow commands. The function is idempotent.
    """
    if not (text.isascii() and text.isprintable()):
        text = _HIDDEN.sub(lambda match: _code_point(match[0]), text.replace("\r\n", "\n"))
    if "::" in text or "##[" in text:
        text = _COMMAND.sub(lambda match: f"{match[1] or ''}{_code_point(match[0][-1])}", text)
    return text


def _code_point(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # an undecodable byte (PEP 383)
        return f"\\x{ord(character) & 0xFF:02x}"
    return f"⟨U+{ord(character):04X}⟩"


def escape_json(text: str) -> str:
    """Escapes every hidden character in JSON text without changing its meaning."""
    text = text.replace("##[", "#\\u0023[")
    if text.isascii() and not _CONTROL.search(text):
        return text
    return _HIDDEN.sub(lambda match: _escape(ord(match[0])), text)


def _escape(point: int) -> str:
    if point <= _LAST_SHORT:
        return f"\\u{point:04x}"
    high, low = divmod(point - _LAST_SHORT - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_LAST_SHORT = 0xFFFF


def one_line(text: str, limit: int) -> str:
    """Returns the text on one line of at most `limit` characters, with hidden ones made visible."""
    flat = whole_line(text)
    return flat if len(flat) <= limit else flat[: max(limit - 1, 0)] + "…"


def whole_line(text: str) -> str:
    """Returns the whole text on one line, with hidden characters made visible."""
    return " ".join(visible(text).split())


def shorten(text: str, limit: int, whole: str = "events.jsonl") -> str:
    """Returns up to `limit` characters of the text, with hidden ones made visible.

    A note after truncated text names the file that contains the `whole` text.
    """
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    return f"{shown[:limit]}\n… cut after {limit:,} characters; {whole} has the whole text"
