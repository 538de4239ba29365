"""Tables of tests: YAML files of documents, each a row with what comes of it under `says`.

A test makes what comes of a row and gives it to `check`. `NUMAPROOF_WRITE_PAGES=1` writes it into
the file instead, by one process (`-p no:xdist`): read what changed there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and a value again where it occurs again."""

    def ignore_aliases(self, data: Any) -> bool:
        """Writes no alias."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


class Table:
    """The rows of a YAML file, each with a name of its own under `what`."""

    def __init__(self, test: str, name: str, *, compact: bool = False) -> None:
        """Reads the file of a name beside a test; a compact one has plain lists on one line."""
        self._flow = None if compact else False
        self._file = Path(test).with_name(name)
        self._rows: list[dict[str, Any]] = [
            *yaml.load_all(self._file.read_text("utf-8"), yaml.CSafeLoader)
        ]

    def __call__(self, test: Callable[..., None]) -> Callable[..., None]:
        """Calls a test with each `row`."""
        rows = [pytest.param(row, id=row["what"]) for row in self._rows]
        return pytest.mark.parametrize("row", rows)(test)

    def row(self, what: str) -> dict[str, Any]:
        """The row of a name."""
        return next(row for row in self._rows if row["what"] == what)

    def check(self, row: dict[str, Any], actual: object) -> None:
        """Holds what comes of a row, in JSON's types, to what the file says."""
        actual = json.loads(json.dumps(actual))
        if not os.environ.get("NUMAPROOF_WRITE_PAGES"):
            assert actual == row.get("says")
            return
        row["says"] = actual
        text = yaml.dump_all(
            self._rows,
            Dumper=_Dumper,
            default_flow_style=self._flow,
            sort_keys=False,
            width=1000,
            allow_unicode=True,
        )
        self._file.write_text(text, "utf-8")


def alike(answers: dict[str, Any]) -> Any:
    """Answers by name, those that are equal under all their names; if all are, the answer alone."""
    names: dict[str, list[str]] = {}
    for name, answer in answers.items():
        names.setdefault(json.dumps(answer), []).append(name)
    together = {", ".join(found): json.loads(answer) for answer, found in names.items()}
    return together if len(together) > 1 else together.popitem()[1]
