"""Writes cases as readable YAML, and adds items to lists in existing files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from numaproof.inputs import documents
from numaproof.workdir.output_files import write_file

try:  # The C version is five times as fast, and writes the same bytes.
    from yaml import CSafeDumper as _SafeDumper
except ImportError:  # pragma: no cover - PyYAML built without libyaml
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case


def write(case: Case, path: Path) -> str:
    """Writes a case to its own file, atomically, and returns the text of the file.

    Raises:
        OSError: the file can't be written.
    """
    written = text(case)
    write_file(path, written)
    return written


LONGEST_TITLE = 200
"""The maximum length of a title in a file. Titles of findings are messages that may quote two
answers.
"""


def text(case: Case) -> str:
    """Formats a case as YAML, deterministically; long titles are truncated."""
    plain = _plain(case)
    if len(case.title) > LONGEST_TITLE:
        plain["title"] = f"{case.title[: LONGEST_TITLE - 1].rstrip()}…"
    return _dump({"cases": [plain]})


def item(case: Case, **extra_fields: Any) -> str:
    """Formats a case as an item of a YAML list, with its level and any `extra_fields`."""
    plain = {**_plain(case), "level": case.level, **extra_fields}
    return _dump([_first(_HEAD, plain)])


_HEAD = (
    *("id", "title", "aliases", "requirements", "bugs", "level", "kubernetes", "defect"),
    *("machines", "let", "config", "devices"),
)
"""The fields above the steps, in order."""


def _first(names: Iterable[str], plain: dict[str, Any]) -> dict[str, Any]:
    """The mapping with the given keys first."""
    return {**{name: plain[name] for name in names if name in plain}, **plain}


def _plain(case: Case) -> dict[str, Any]:
    """Converts a case to plain values, omitting null fields of its machine and empty fields.

    msgspec doesn't recognize the defaults of cases that another process has sent.
    """
    plain = {key: value for key, value in msgspec.to_builtins(case).items() if value != {}}
    if "machine" in plain:
        plain["machine"] = _without_nulls(plain["machine"])
    plain["steps"] = [
        {key: value for key, value in step.items() if (key, value) != ("expect", {})}
        for step in plain["steps"]
    ]
    for step in plain["steps"]:
        if isinstance(step.get("expect"), list | tuple):
            step["expect"] = [_first(("kubernetes",), one) for one in step["expect"]]
    return plain


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(one) for one in value]
    return value


def _dump(plain: Any) -> str:
    return yaml.dump(_compact(plain), Dumper=_Dumper, sort_keys=False, width=96, allow_unicode=True)


def name_of(case: Case) -> str:
    """A file name for a case, derived from its contents."""
    digest = hashlib.sha256(text(case).encode()).hexdigest()
    return f"{case.id}-{digest[:8]}.yaml"


class _Line(dict[str, Any]):
    """A mapping written on one line."""


class _Row(list[Any]):
    """A list written on one line."""


class _Dumper(_SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_Dumper.add_representer(
    _Line,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=True
    ),
)
_Dumper.add_representer(
    _Row,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)


def _compact(value: Any, depth: int = 0) -> Any:
    """Marks nested mappings and lists so that they are written on one line."""
    if isinstance(value, dict):
        inner = {key: _compact(item, depth + 1) for key, item in value.items()}
        flat = not any(isinstance(item, dict | list) for item in inner.values())
        return _Line(inner) if flat and depth else inner
    if isinstance(value, list | tuple):
        items = [_compact(item, depth + 1) for item in value]
        flat = not any(isinstance(item, dict | list) for item in items)
        return _Row(items) if flat else items
    return value


def with_items(text: str, key: str, items: str, file: str, what: str) -> str:
    """Appends items, after an empty line, to a list in a YAML text.

    Args:
        text: the YAML text of a mapping.
        key: the key of the list.
        items: the items as YAML, with hyphens in the first column.
        file: the name of the file, for messages.
        what: a description of an item for messages.

    Raises:
        documents.DocumentError: the list is written in brackets.
    """
    lines = text.splitlines(keepends=True)
    at, column = _place(text, lines, key, file, what)
    ending = "\r\n" if "\r\n" in text else "\n"
    indented = [" " * column + line + ending for line in items.splitlines()]
    gap = [ending] if at and lines[at - 1].strip() else []
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += ending
    rest = [ending, *lines[at:]] if at < len(lines) else []
    return "".join([*lines[:at], *gap, *indented, *rest])


def _place(text: str, lines: Sequence[str], key: str, file: str, what: str) -> tuple[int, int]:
    """The line at which to insert items, and the column of their hyphens."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    keys = {one.value: (one, value) for one, value in root.value}
    _, listed = keys[key]
    if root.flow_style or listed.flow_style or not listed.value:
        raise documents.DocumentError(
            file,
            listed.start_mark.line + 1,
            key,
            f"can't add {what} to a list in brackets",
            "write the list with one item per line, or add it to another file",
        )
    follows = [one.start_mark.line for one, _ in keys.values()]
    at = min((line for line in follows if line > listed.start_mark.line), default=len(lines))
    # Comments directly above the next key belong to that key.
    while at < len(lines) and _is_aside(lines[at - 1]):
        at -= 1
    return at, listed.start_mark.column


def _is_aside(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
