"""Makes text from an implementation safe to display.

Such text may contain control characters that drive a terminal, characters that XML forbids, and
direction marks that make a line read as something else. All of them are shown as code points.
Markup is escaped by each format itself.
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

    Tabs and line feeds stay; carriage returns before a line feed are dropped. The result contains
    only characters that XML 1.0 allows.
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters, hidden characters made visible."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= limit else flat[: max(limit - 1, 0)] + "…"


def shortened(text: str, limit: int, whole: str = "events.jsonl") -> str:
    """About the first `limit` characters of the text, hidden ones made visible.

    If the text is cut, a note names the file that has the `whole` text.
    """
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    return f"{shown[:limit]}\n… {len(shown) - limit} more characters are in {whole}"
