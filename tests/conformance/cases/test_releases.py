"""Which releases a case is for."""

from __future__ import annotations

import pytest

from numaproof.conformance.cases.releases import ConstraintError, includes
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations import releases


def test_the_reference_knows_every_release_and_no_other() -> None:
    assert tuple(releases.TABLE) == RELEASES


@pytest.mark.parametrize(
    ("constraint", "release", "included"),
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
def test_a_constraint_includes_a_release_by_number(
    constraint: str, release: str, *, included: bool
) -> None:
    assert includes(constraint, release) is included


@pytest.mark.parametrize("constraint", ["newest", "~1.34", "1", ">= 1.34,", "1.34.2"])
def test_another_form_is_an_error_that_shows_the_right_one(constraint: str) -> None:
    with pytest.raises(ConstraintError, match=r"is not a release such as '1\.35' or '>= 1\.34'"):
        includes(constraint, "1.35")
