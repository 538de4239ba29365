"""Tables of tests: YAML files with rows whose expected results are under `says`.

A test passes its result for a row to `check`. With `NUMAPROOF_WRITE_PAGES=1`, the result is written
into the file instead, in a single process (`-p no:xdist`). Review the diff.
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
    """Writes multi-line texts as blocks, and repeats values instead of using aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never writes aliases."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


class Table:
    """The rows of a YAML file, each with a unique name under `what`."""

    def __init__(self, test: str, name: str, *, compact: bool = False) -> None:
        """Opens the table next to a test; `compact` writes plain lists on one line."""
        self._flow = None if compact else False
        self._file = Path(test).with_name(name)
        self._rows: list[dict[str, Any]] = [
            *yaml.load_all(self._file.read_text("utf-8"), yaml.CSafeLoader)
        ]

    def __call__(self, test: Callable[..., None]) -> Callable[..., None]:
        """Parametrizes a test with each `row`."""
        rows = [pytest.param(row, id=row["what"]) for row in self._rows]
        return pytest.mark.parametrize("row", rows)(test)

    def row(self, what: str) -> dict[str, Any]:
        """Returns the row with a name."""
        return next(row for row in self._rows if row["what"] == what)

    def check(self, row: dict[str, Any], actual: object) -> None:
        """Compares a row's result, in JSON types, with the file."""
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
    """Groups names with equal answers; returns the answer alone if all are equal."""
    names: dict[str, list[str]] = {}
    for name, answer in answers.items():
        names.setdefault(json.dumps(answer), []).append(name)
    together = {", ".join(found): json.loads(answer) for answer, found in names.items()}
    return together if len(together) > 1 else together.popitem()[1]
