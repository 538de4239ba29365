"""What completion lists is what loading the files finds."""

from __future__ import annotations

from numaproof.conformance.cases import loading
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.selection import listing
from numaproof.conformance.selection.listing import ListedId


def test_the_cases_listed_are_those_that_are_loaded() -> None:
    loaded = [
        ListedId(case.id, case.title, case.aliases, case.requirements)
        for case in loading.bundled_cases()
    ]
    assert list(listing.cases()) == loaded


def test_the_requirements_listed_are_those_of_the_registry() -> None:
    rows = load_registry().requirements
    assert list(listing.requirements()) == [ListedId(row.id, row.statement) for row in rows]
