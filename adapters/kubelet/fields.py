"""Updates the table of configuration and pod fields from the output of built programs.

``fields.py TABLE PROGRAM...`` runs each program (``fields/`` built for a release) and replaces the
fields of its release in the table. The fields of other releases don't change.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

TITLE = """\
# The fields of what people write for a kubelet: its configuration, pods, and workloads with a pod
# template. A type is followed by its fields, each with the type of its value, and with the releases
# that have it unless all do. Names and types are those of k8s.io/api and k8s.io/kubelet.
"""

Row = tuple[str, str, str]
"""A type, a field, and the type of the field's value; the last two are empty without fields."""


def read(text: str) -> dict[str, set[Row]]:
    """Returns the rows of each release."""
    head, *lines = text.split("\n\n")[1].splitlines()
    releases = head.split()[1:]
    rows: dict[str, set[Row]] = {release: set() for release in releases}
    owner = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith(" "):
            owner = line
            if not following.startswith(" "):
                for each in rows.values():
                    each.add((owner, "", ""))
            continue
        field, value, *spans = line.split()
        for release in _expand_spans(spans, releases):
            rows[release].add((owner, field, value))
    return rows


def _expand_spans(spans: list[str], releases: list[str]) -> list[str]:
    if not spans:
        return releases
    found = []
    for span in spans[0].split(","):
        first, _, last = span.partition("-")
        found += releases[releases.index(first) : releases.index(last or first) + 1]
    return found


def format_table(rows: dict[str, set[Row]]) -> str:
    """Formats the rows as a table."""
    releases = sorted(rows, key=lambda release: [int(part) for part in release.split(".")])
    lines = [f"releases {' '.join(releases)}"]
    every = sorted(set().union(*rows.values()))
    for owner, fields in groupby(every, key=lambda row: row[0]):
        lines.append(owner)
        for row in fields:
            if not row[1]:
                continue
            spans = _spans([release for release in releases if row in rows[release]], releases)
            lines.append(f"  {row[1]} {row[2]} {spans}".rstrip())
    return "\n".join([TITLE, *lines, ""])


def _spans(having: list[str], releases: list[str]) -> str:
    """Formats the releases as ranges; empty if all releases have the row."""
    if having == releases:
        return ""
    marks = "".join("x" if release in having else "." for release in releases)
    ranges = [(releases[one.start()], releases[one.end() - 1]) for one in re.finditer("x+", marks)]
    return ",".join(first if first == last else f"{first}-{last}" for first, last in ranges)


def main(table: Path, programs: list[str]) -> None:
    """Replaces the rows of the programs' releases in the table."""
    rows = read(table.read_text(encoding="ascii"))
    for program in programs:
        ended = subprocess.run(  # noqa: S603 - the user's own program
            [program], check=True, capture_output=True
        )
        answer = json.loads(ended.stdout)
        rows[answer["kubernetes"]] = {
            (owner, field, value)
            for owner, fields in answer["types"].items()
            for field, value in (fields or {"": ""}).items()
        }
    table.write_text(format_table(rows), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
