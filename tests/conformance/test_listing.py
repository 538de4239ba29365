"""What completion lists is what loading the files finds."""

from __future__ import annotations

from numaproof.conformance import listing
from numaproof.conformance.cases import loading
from numaproof.conformance.listing import Listed
from numaproof.conformance.requirements import load_registry


def test_the_cases_listed_are_those_that_are_loaded() -> None:
    loaded = [
        Listed(case.id, case.title, case.aliases, case.requirements)
        for case in loading.bundled_cases()
    ]
    assert list(listing.cases()) == loaded


def test_the_requirements_listed_are_those_of_the_registry() -> None:
    rows = load_registry().requirements
    assert list(listing.requirements()) == [Listed(row.id, row.statement) for row in rows]
