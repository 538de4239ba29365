"""Generates the tables of `docs/coverage.md` from the pages of the releases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from report import GOALS, table

if TYPE_CHECKING:
    from collections.abc import Mapping

BEGIN = "<!-- The tables below are generated from the pages of the releases. -->"
END = "<!-- The tables above are generated from the pages of the releases. -->"


def with_tables(document: str, pages: Mapping[str, str]) -> str:
    """Replaces the tables between a document's two markers with those made from the pages.

    Raises:
        ValueError: the document lacks a marker.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"expected the lines {BEGIN!r} and {END!r} around the tables")
    return f"{before}{BEGIN}\n\n{_tables(pages)}\n{END}{after}"


def _tables(pages: Mapping[str, str]) -> str:
    """Returns a table of how many of all and of the reachable statements each release reached."""
    found = {release: _figures(pages[release]) for release in sorted(pages, key=_number)}
    names = [name for name in GOALS if all(name in one for one in found.values())]
    shares = [(name, *(_shares(one[name]) for one in found.values())) for name in names]
    runs = ("case runs", *(_runs(pages[release]) for release in found))
    return (
        "Share of all statements that are reached and, in brackets, share of the reachable "
        "statements:\n\n"
        f"{table(('package', *found), [*shares, runs])}"
    )


def _shares(cells: list[str]) -> str:
    _, reached, _, _, of_reachable = (cell.replace(" %", "%") for cell in cells)
    return f"{reached} ({of_reachable})"


def _figures(page: str) -> dict[str, list[str]]:
    """Returns the other cells of each row of a page's first table, by package."""
    rows = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| "))
    found: dict[str, list[str]] = {}
    for name, *cells in rows:
        if name in GOALS:
            found.setdefault(name, cells)
    return found


def _runs(page: str) -> str:
    told = re.search(r"([\d,]+) case runs", page)
    return told[1] if told else "-"


def _number(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]
