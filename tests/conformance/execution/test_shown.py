"""How reports shorten long values."""

from __future__ import annotations

from numaproof.conformance.execution.truncation import (
    LONGEST_PROBLEM,
    MAX_ITEMS,
    MAX_PROBLEMS,
    MAX_SHOWN,
    cut,
    reported_problems,
    truncate,
)


def test_short_text_is_shown_in_full() -> None:
    value = {"a": ["x" * MAX_SHOWN, 1, None], "b": {"c": True}}
    assert truncate(value) == value
    assert reported_problems(["x"] * MAX_PROBLEMS) == ("x",) * MAX_PROBLEMS
    assert cut("x" * LONGEST_PROBLEM) == "x" * LONGEST_PROBLEM


def test_the_rest_of_long_values_is_counted() -> None:
    one, other = (truncate({"a": "x" * MAX_SHOWN + end})["a"] for end in ("12", "13"))
    assert one.endswith("... and 2 more characters (CRC 4f5344cd)")
    assert one != other
    assert truncate(tuple(range(MAX_ITEMS + 3)))[MAX_ITEMS:] == ["... and 3 more"]
    many = truncate({str(number): 0 for number in range(MAX_ITEMS + 2)})
    assert (len(many), many["..."]) == (MAX_ITEMS + 1, "and 2 more")
    shown = reported_problems(["x" * (LONGEST_PROBLEM + 7), *["y"] * (MAX_PROBLEMS + 5)])
    assert shown[0].endswith("... and 7 more characters")
    assert shown[-1] == "... and 6 more"
    assert len(shown) == MAX_PROBLEMS + 1
