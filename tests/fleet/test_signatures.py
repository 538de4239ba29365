"""What is one finding and what are two."""

from __future__ import annotations

import pytest

from numaproof.fleet.signatures import signature


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("cpus: expected 4, got 0-3,8", "cpus: expected 12-13, got 0"),
        ("devices are on nodes [0, 1]", "devices are on nodes [3]"),
        ("state 0xff0 of c1", "state 0x1 of c22"),
    ],
)
def test_numbers_and_lists_of_them_make_no_difference(left: str, right: str) -> None:
    assert signature("a", "fail", left) == signature("a", "fail", right)


def test_words_the_outcome_and_the_subject_do() -> None:
    whole = {
        signature("a", "fail", "one"),
        signature("b", "fail", "one"),
        signature("a", "fault", "one"),
        signature("a", "fail", "two"),
    }
    assert len(whole) == 4
