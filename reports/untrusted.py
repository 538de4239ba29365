"""Text that came from an implementation, made harmless to look at.

Such text may hold control characters that drive a terminal, characters that XML forbids, and
direction marks that let a line read as something that it is not. All of them are shown by their
code points instead. What a format itself reserves (markup) is escaped where that format is made.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, save tab and line feed
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidi controls
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ufffe\uffff"  # variation selectors, marks, non-characters
    "\ud800-\udfff"  # lone surrogates
    "\U000e0000-\U000e0fff"  # tags
    "]"
)


def visible(text: str) -> str:
    """The text with every hidden or forbidden character written as its code point.

    Tabs and line feeds stay, carriage returns before a line feed go. The result holds only
    characters that XML 1.0 allows.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """The text on a single line of at most `limit` characters, hidden characters visible."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else flat[: max(limit - 1, 0)] + "…"


def shortened(text: str, limit: int, whole: str = "events.jsonl") -> str:
    """At most about `limit` characters of the text, hidden ones visible, with a note of the cut.

    The note names the file that has the `whole` text.
    """
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    return f"{shown[:limit]}\n… {len(shown) - limit} more characters are in {whole}"


def tail(text: str, limit: int) -> str:
    """At most about `limit` characters of the text's end, hidden ones visible."""
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    return f"… {len(shown) - limit} characters before\n{shown[-limit:]}"
