"""The ids of bundled cases and requirements, read line by line: completion must be quick.

Loading the files takes seconds of YAML, of which completion needs a few lines. That these are the
same as those that loading finds is held by a test.
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
        about: the title of a case, the statement of a requirement.
        aliases: the ids that a case had before.
        requirements: what a case checks.
    """

    id: str
    about: str
    aliases: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


def cases(start: str = "") -> Iterator[ListedId]:
    """The bundled cases whose ids start so, in the order of their files' names."""
    root = resources.files("numaproof.conformance") / "suite"
    wanted = ("title", "aliases", "requirements")
    for file in sorted(root.iterdir(), key=str):
        for name, fields in _items(file, "", start, wanted):
            about, aliases, requirements = map(fields.get, wanted)
            yield ListedId(name, about or "", _flow(aliases), _flow(requirements))


def requirements(start: str = "") -> Iterator[ListedId]:
    """The requirements of the registry whose ids start so."""
    file = resources.files("numaproof.conformance") / "requirements.yaml"
    for name, fields in _items(file, "  ", start, ("statement",)):
        yield ListedId(name, fields["statement"])


def _items(
    file: Traversable, indent: str, start: str, field_names: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The items whose dashes stand at an indentation and whose ids start so: id, texts wanted."""
    begin = re.compile(rf"^{indent}- id: (\S+)$", re.MULTILINE)
    parts = begin.split(file.read_text(encoding="utf-8"))[1:]
    # What follows on lines of its own is indented more, or the items of a list.
    field = re.compile(
        rf"^{indent}  ({'|'.join(field_names)}): *(.*(?:\n{indent}  (?:  |- ).*)*)", re.MULTILINE
    )
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name.startswith(start):
            yield name, {key: _scalar(value) for key, value in field.findall(text)}


def _scalar(text: str) -> str:
    """A value of one line, or folded over several."""
    words = " ".join(text.removeprefix(">-").split())
    if words[:1] in ("'", '"') and words[-1:] == words[:1]:
        quote, words = words[0], words[1:-1]
        words = words.replace("''", "'") if quote == "'" else words.replace('\\"', '"')
    return words


def _flow(text: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w[\w-]*", text or ""))
