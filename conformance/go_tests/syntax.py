"""Go source, formatted as `gofmt` does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Entry = str | tuple[str, str]
"""An element of a composite literal, or a key and a value."""


def quote(text: str) -> str:
    """Returns a Go string literal."""
    return json.dumps(text, ensure_ascii=False)


def raw(text: str) -> str:
    """Returns a raw string literal if possible."""
    return quote(text) if "`" in text else f"`{text}`"


def indent(text: str) -> str:
    """Indents every line that isn't empty by a tab."""
    return re.sub(r"^(?=.)", "\t", text, flags=re.MULTILINE)


def composite(head: str, entries: Iterable[Entry]) -> str:
    """Returns a composite literal with one entry per line, with values aligned like `gofmt`."""
    lines: list[str] = []
    aligned: list[tuple[str, str]] = []

    def flush() -> None:
        width = max((len(key) for key, _ in aligned), default=0) + 2
        lines.extend(f"{f'{key}:':<{width}}{value}," for key, value in aligned)
        aligned.clear()

    for entry in entries:
        match entry:
            case (key, value) if "\n" not in value:
                aligned.append((key, value))
            case (key, value):
                flush()
                lines.append(f"{key}: {value},")
            case text:
                flush()
                lines.append(f"{text},")
    flush()
    return f"{head}{{\n{indent(chr(10).join(lines))}\n}}" if lines else f"{head}{{}}"


def inline(head: str, entries: Iterable[Entry]) -> str:
    """Returns a composite literal on one line."""
    listed = (one if isinstance(one, str) else f"{one[0]}: {one[1]}" for one in entries)
    return f"{head}{{{', '.join(listed)}}}"


def string_map(values: Mapping[str, str]) -> str:
    """Returns a ``map[string]string``, or ``nil`` if it is empty."""
    entries = [(quote(key), quote(value)) for key, value in values.items()]
    return inline("map[string]string", entries) if entries else "nil"


def block(head: str, *body: str) -> str:
    """Returns a statement with a body in braces."""
    return f"{head} {{\n{indent(chr(10).join(body))}\n}}"


_INITIALISMS = {"cpu": "CPU", "cpus": "CPUs", "id": "ID", "numa": "NUMA", "pcpus": "PCPUs"}


def camel(name: str) -> str:
    """Converts words joined by hyphens to an exported Go name."""
    words = re.split(r"[^0-9A-Za-z]+", name)
    return "".join(_INITIALISMS.get(word, word[:1].upper() + word[1:]) for word in words)
