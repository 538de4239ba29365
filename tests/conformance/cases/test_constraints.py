"""Release constraints of cases, and suggestions for misspelt ids."""

from __future__ import annotations

import pytest

from numaproof.conformance.cases import naming
from numaproof.conformance.cases.releases import ConstraintError, includes
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations import releases


def test_the_reference_supports_exactly_the_known_releases() -> None:
    assert tuple(releases.TABLE) == RELEASES


@pytest.mark.parametrize(
    ("constraint", "release", "is_included"),
    [
        ("", "1.33", True),
        ("1.34", "1.34", True),
        ("== 1.34", "1.35", False),
        (">= 1.9", "1.34", True),
        ("> 1.34", "1.34", False),
        (">= 1.34, < 1.36", "1.35", True),
        (">= 1.34, < 1.36", "1.36", False),
        ("<=1.33", "1.33", True),
    ],
)
def test_a_constraint_compares_releases_as_numbers(
    constraint: str, release: str, *, is_included: bool
) -> None:
    assert includes(constraint, release) is is_included


@pytest.mark.parametrize("constraint", ["newest", "~1.34", "1", ">= 1.34,", "1.34.2"])
def test_a_malformed_constraint_shows_the_right_form(constraint: str) -> None:
    with pytest.raises(ConstraintError, match=r"expected a release such as '1\.35' or '>= 1\.34'"):
        includes(constraint, "1.35")


IDS = ("static-gives-cpus", "static-gives-more", "static-takes-cores", "topo-merge-one", "pool-is")


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        ("statik-*", "; did you mean 'static-*'?"),
        ("topo-merg-*", "; did you mean 'topo-merge-*'?"),
        (
            "static",
            "; did you mean 'static-gives-cpus' or 'static-gives-more' or 'static-takes-cores'?",
        ),
        ("topo-merge-on", "; did you mean 'topo-merge-one'?"),
        ("static-takes", "; did you mean 'static-takes-cores'?"),
        ("*", ""),
        ("nothing-like-it", ""),
    ],
)
def test_similar_names_are_suggested(pattern: str, suggestion: str) -> None:
    assert naming.did_you_mean(pattern, IDS) == suggestion
