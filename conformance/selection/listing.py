"""Lists the ids of bundled cases and requirements without a YAML parser, for shell completion.

Parsing the files would take seconds. A test compares the results with the parser's.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable


class ListedId(NamedTuple):
    """A case or a requirement.

    Attributes:
        id: its id.
        about: the title of a case, or the statement of a requirement.
        aliases: a case's former ids.
        requirements: the requirements that a case checks.
    """

    id: str
    about: str
    aliases: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


def cases(start: str = "") -> Iterator[ListedId]:
    """The bundled cases whose ids begin with `start`, ordered by file name."""
    root = resources.files("numaproof.conformance") / "suite"
    wanted = ("title", "aliases", "requirements")
    for file in sorted(root.iterdir(), key=str):
        for name, fields in _items(file, "", start, wanted):
            about, aliases, requirements = map(fields.get, wanted)
            yield ListedId(name, about or "", _flow(aliases), _flow(requirements))


def requirements(start: str = "") -> Iterator[ListedId]:
    """The requirements whose ids begin with `start`."""
    file = resources.files("numaproof.conformance") / "requirements.yaml"
    for name, fields in _items(file, "  ", start, ("statement",)):
        yield ListedId(name, fields["statement"])


def _items(
    file: Traversable, indent: str, start: str, field_names: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The ids and fields of the list items at an indentation, if their ids begin with `start`."""
    begin = re.compile(rf"^{indent}- id: (\S+)$", re.MULTILINE)
    parts = begin.split(file.read_text(encoding="utf-8"))[1:]
    # Continuation lines are indented further, or are items of a nested list.
    field = re.compile(
        rf"^{indent}  ({'|'.join(field_names)}): *(.*(?:\n{indent}  (?:  |- ).*)*)", re.MULTILINE
    )
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name.startswith(start):
            yield name, {key: _scalar(value) for key, value in field.findall(text)}


def _scalar(text: str) -> str:
    """Parses a scalar on one line or folded over several."""
    words = " ".join(text.removeprefix(">-").split())
    if words[:1] in ("'", '"') and words[-1:] == words[:1]:
        quote, words = words[0], words[1:-1]
        words = words.replace("''", "'") if quote == "'" else words.replace('\\"', '"')
    return words


def _flow(text: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w[\w-]*", text or ""))
