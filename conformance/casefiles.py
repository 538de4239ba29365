"""A played sequence of steps, written as a case file that a person can read and replay."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from numaproof.conformance.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases import Case


def write(case: Case, path: Path) -> None:
    """Writes a case as a file of its own; never half.

    Raises:
        OSError: the file can't be written.
    """
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text(case), encoding="utf-8")
    partial.replace(path)


def text(case: Case) -> str:
    """The case as YAML: the same bytes for the same case."""
    plain = msgspec.to_builtins(Table(cases=(case,)))
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
        inner = {key: _compact(item, depth + 1) for key, item in value.items() if item is not None}
        flat = not any(isinstance(item, dict | list) for item in inner.values())
        return _Line(inner) if flat and depth else inner
    if isinstance(value, list | tuple):
        items = [_compact(item, depth + 1) for item in value]
        flat = not any(isinstance(item, dict | list) for item in items)
        return _Row(items) if flat else items
    return value
