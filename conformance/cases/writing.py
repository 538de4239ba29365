"""A played sequence of steps, written as a case file that a person can read and replay."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from numaproof.folders.output_files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case


def write(case: Case, path: Path) -> None:
    """Writes a case as a file of its own; never half.

    Raises:
        OSError: the file can't be written.
    """
    write_file(path, text(case))


LONGEST_TITLE = 200
"""Characters of a title in a file: that of a finding is a message, which may quote two answers."""


def text(case: Case) -> str:
    """The case as YAML: the same bytes for the same case. Of a long title the beginning."""
    plain = _plain(case)
    if len(case.title) > LONGEST_TITLE:
        plain["title"] = f"{case.title[: LONGEST_TITLE - 1].rstrip()}…"
    return _dumped({"cases": [plain]})


def item(case: Case, **said: Any) -> str:
    """The case as an item of a list in YAML, with its level said; `said` is written besides."""
    plain = {key: value for key, value in _plain(case).items() if value != {}}
    plain |= {"level": case.level, **said}
    plain["steps"] = [
        {key: value for key, value in step.items() if (key, value) != ("expect", {})}
        for step in plain["steps"]
    ]
    return _dumped([_first(_HEAD, plain)])


_HEAD = (
    *("id", "title", "aliases", "requirements", "bugs", "level", "kubernetes", "defect"),
    *("machines", "let", "config", "devices"),
)
"""What stands above the steps of a case, in this order."""


def _first(names: Iterable[str], plain: dict[str, Any]) -> dict[str, Any]:
    """The same mapping with some keys first."""
    return {**{name: plain[name] for name in names if name in plain}, **plain}


def _plain(case: Case) -> dict[str, Any]:
    """The case as plain values; of its machine only what is there."""
    plain: dict[str, Any] = msgspec.to_builtins(case)
    if "machine" in plain:
        plain["machine"] = _without_nulls(plain["machine"])
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


def _dumped(plain: Any) -> str:
    return yaml.dump(_compact(plain), Dumper=_Dumper, sort_keys=False, width=96, allow_unicode=True)


def name_of(case: Case) -> str:
    """A file name for a case, from its content."""
    digest = hashlib.sha256(text(case).encode()).hexdigest()
    return f"{case.id}-{digest[:8]}.yaml"


class _Line(dict[str, Any]):
    """A mapping that is written on one line."""


class _Row(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
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
    """The same values, with what is deep or small in one line."""
    if isinstance(value, dict):
        inner = {key: _compact(item, depth + 1) for key, item in value.items()}
        flat = not any(isinstance(item, dict | list) for item in inner.values())
        return _Line(inner) if flat and depth else inner
    if isinstance(value, list | tuple):
        items = [_compact(item, depth + 1) for item in value]
        flat = not any(isinstance(item, dict | list) for item in items)
        return _Row(items) if flat else items
    return value
