from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.tables import Table
from numaproof.fakesys.ranges import (
    format_list,
    format_mask,
    format_sequence,
    parse_list,
    parse_sequence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@given(st.sets(st.integers(0, 300)))
def test_a_list_round_trips(numbers: set[int]) -> None:
    assert set(parse_list(format_list(numbers), 301)) == numbers


RANGES = Table(__file__, "ranges.yaml", compact=True)
READ: dict[str, Callable[[str, int], Iterable[int | None]]] = {
    "a list": parse_list,
    "a sequence": parse_sequence,
}


@RANGES
def test_a_list_parses_or_is_refused(row: dict[str, Any]) -> None:
    RANGES.check(row, {text: _read(READ[row["what"]], text) for text in row["says"]})


def _read(read: Callable[[str, int], Iterable[int | None]], text: str) -> object:
    try:
        numbers = list(read(text, 100))
    except ValueError as error:
        return {"refused": str(error)}
    return {"numbers": numbers, "short": format_sequence(numbers)}


def test_the_first_duplicate_ends_a_list() -> None:
    with pytest.raises(ValueError, match="duplicate number 0"):
        parse_list("0-99," * 1_000_000 + "0", 100)


@given(st.sets(st.integers(0, 200)), st.integers(1, 300))
def test_a_mask_has_exactly_the_numbers(numbers: set[int], width: int) -> None:
    value = int(format_mask(numbers, width).replace(",", ""), 16)
    assert {i for i in range(301) if value >> i & 1} == numbers


@pytest.mark.parametrize(
    ("numbers", "width", "text"),
    [([0], 4, "1"), ([0], 8, "01"), ([0, 35], 40, "08,00000001"), ([], 64, "00000000,00000000")],
)
def test_a_mask_is_as_wide_as_the_kernels(numbers: list[int], width: int, text: str) -> None:
    assert format_mask(numbers, width) == text


values = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-2, 9)), min_size=1, max_size=40),
    st.builds(
        lambda unit, count: unit * count,
        st.lists(st.integers(0, 5), min_size=1, max_size=5),
        st.integers(1, 9),
    ),
    st.builds(
        lambda step, count: [i * step for i in range(count)], st.integers(1, 9), st.integers(1, 30)
    ),
)


@given(values)
def test_a_sequence_round_trips(sequence: list[int | None]) -> None:
    assert list(parse_sequence(format_sequence(sequence), 500)) == sequence
