"""`readings.txt` shows what is read from each file in `inputs/`.

`NUMAPROOF_WRITE_PAGES=1` updates it. Review the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.formats import configurations
from numaproof.inputs.documents import DocumentError, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.formats.configurations import Configuration

HERE = Path(__file__).parent
INPUTS = sorted((HERE / "inputs").iterdir())
READINGS = HERE / "readings.txt"


def leaves(configuration: Configuration, *path: str) -> Iterator[str]:
    """Yields the fields of a configuration, with the line of each."""
    for name, value in (value_at(configuration.document.data, path) or {}).items():
        where = (*path, name)
        if isinstance(value, dict) and value:
            yield from leaves(configuration, *where)
        elif name not in ("apiVersion", "kind"):
            yield f"  {configuration.document.line(where)}: {'.'.join(where)} {value}"


def reading(file: Path) -> str:
    """Returns what is read from a file."""
    lines = [f"{file.name}"]
    try:
        for found in configurations.read(file.read_text("utf-8"), file.name):
            one = configurations.combine([found])
            title = [f"name {one.name}"] if one.name else []
            title += [part for part in (one.product, one.source) if part]
            lines.append(f"- {', '.join(title) or 'a KubeletConfiguration'}")
            lines += leaves(one)
            lines += (f"  {flag.place.line()}: {flag}" for flag in one.flags)
            lines += (f"  ! {note}" for note in one.notes)
            lines += (f"  ! {error}" for error in one.errors)
            lines += [f"  ! defaults of {one.adds_defaults}"] if one.adds_defaults else []
    except DocumentError as error:
        lines.append(f"! {error}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: file.name)
def test_a_file_is_read_as_shown(file: Path) -> None:
    if os.environ.get("NUMAPROOF_WRITE_PAGES"):
        READINGS.write_text("\n".join(map(reading, INPUTS)), "utf-8")
    assert reading(file) in READINGS.read_text("utf-8")


def test_nothing_else_is_shown() -> None:
    shown = READINGS.read_text("utf-8").split("\n\n")
    assert [one.partition("\n")[0] for one in shown] == [file.name for file in INPUTS]
