"""Updates the reference's table of feature gates from the output of built adapters.

``gates.py TABLE PROGRAM...`` runs each program and replaces or adds the column of its release. The
columns of other releases don't change. Given programs for all releases, it regenerates the whole
table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GATES_TITLE = """\
# The kubelet's feature gates: one row per gate, one column per release.
#
# The letter is the gate's maturity: alpha, beta, stable or deprecated. A capital letter means on by
# default, "!" locked to the default, and a dot that the release does not have the gate.
"""
NEEDS_TITLE = "# Dependencies between gates. An x means that the release checks the dependency.\n"

Column = dict[tuple[str, ...], str]
"""The cells of a release, by the first columns of their row."""


def main(table: Path, programs: list[str]) -> None:
    """Replaces the columns of the programs' releases in the table."""
    gates, needs = read(table.read_text(encoding="ascii"))
    for program in programs:
        ended = subprocess.run(  # noqa: S603 - the user's own program
            [program, "-gates"], check=True, capture_output=True
        )
        answer = json.loads(ended.stdout)
        known = answer["gates"]
        gates[answer["kubernetes"]] = {(name,): cell(gate) for name, gate in known.items()}
        needs[answer["kubernetes"]] = {
            (name, needed): "x"
            for name, gate in known.items()
            for needed in gate["needs"]
            if not always_on(known[needed])
        }
    lines = [GATES_TITLE, *rows(("gate",), gates), ""]
    lines += [NEEDS_TITLE, *rows(("gate", "needs"), needs), ""]
    table.write_text("\n".join(lines), encoding="ascii")


def read(text: str) -> tuple[dict[str, Column], dict[str, Column]]:
    """Returns the columns of both tables by release."""
    first, second = (
        [line.split() for line in part.splitlines()]
        for part in text.split("\n\n")
        if not part.startswith("#")
    )
    return columns(first, 1), columns(second, 2)


def columns(lines: list[list[str]], names: int) -> dict[str, Column]:
    """Returns the columns of a table whose rows start with the given number of names."""
    return {
        release: {tuple(line[:names]): line[at] for line in lines[1:] if line[at] != "."}
        for at, release in enumerate(lines[0][names:], start=names)
    }


def cell(gate: dict[str, object]) -> str:
    """Formats a gate as a cell."""
    letter = str(gate["maturity"])[0]
    return (letter.upper() if gate["default"] else letter) + ("!" if gate["locked"] else "")


def always_on(gate: dict[str, object]) -> bool:
    """Returns whether a gate can't be turned off, so dependencies on it need not be listed."""
    return bool(gate["locked"] and gate["default"])


def rows(title: tuple[str, ...], table: dict[str, Column]) -> list[str]:
    """Returns the lines of a table with its releases and rows in order."""
    releases = sorted(table, key=lambda release: [int(part) for part in release.split(".")])
    names = sorted(set().union(*table.values()))
    cells = [(*title, *releases)]
    cells += [(*row, *(table[release].get(row, ".") for release in releases)) for row in names]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [" ".join(map(str.ljust, line, widths)).rstrip() for line in cells]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
