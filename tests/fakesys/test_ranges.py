import pytest
from hypothesis import given
from hypothesis import strategies as st

from numaproof.fakesys.ranges import (
    format_list,
    format_mask,
    format_sequence,
    parse_list,
    parse_sequence,
)


@given(st.sets(st.integers(0, 300)))
def test_a_list_reads_back_as_the_set_it_was_made_from(numbers: set[int]) -> None:
    assert set(parse_list(format_list(numbers), 301)) == numbers


def test_a_list_may_stride() -> None:
    assert parse_list("0-6/2, 9", 10) == (0, 2, 4, 6, 9)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0-x", "expected a number or a range"),
        ("3-1", "empty range"),
        ("0-4/0", "empty range"),
        ("0,0", "duplicate number 0"),
        ("0-99," * 1_000_000 + "0", "duplicate number 0"),
        ("0-99999999", "too large"),
        ("1,,2", "expected a number or a range"),
    ],
)
def test_a_bad_list_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_list(text, 100)


@given(st.sets(st.integers(0, 200)), st.integers(1, 300))
def test_a_mask_holds_exactly_the_numbers(numbers: set[int], width: int) -> None:
    value = int(format_mask(numbers, width).replace(",", ""), 16)
    assert {i for i in range(301) if value >> i & 1} == numbers


@pytest.mark.parametrize(
    ("numbers", "width", "text"),
    [([0], 4, "1"), ([0], 8, "01"), ([0, 35], 40, "08,00000001"), ([], 64, "00000000,00000000")],
)
def test_a_mask_is_as_wide_as_the_kernel_writes_it(
    numbers: list[int], width: int, text: str
) -> None:
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
def test_a_sequence_reads_back_as_it_was(sequence: list[int | None]) -> None:
    assert list(parse_sequence(format_sequence(sequence), 500)) == sequence


@pytest.mark.parametrize(
    ("sequence", "text"),
    [
        ([0, 1, 2, 3], "0-3"),
        ([0, 0, 4, 4, 8, 8], "0-8/4:2"),
        ([0, 8] * 3, "(0,8)*3"),
        ([None] * 4, "none*4"),
        ([5], "5"),
        ([-1, -1], "-1*2"),
        ([9, 0, 1, 0, 1, 0, 1], "9,0-1*3"),
    ],
)
def test_a_sequence_is_spelt_shortly(sequence: list[int | None], text: str) -> None:
    assert format_sequence(sequence) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0-3*99999999", "more than 100 values"),
        ("0-99999999", "more than 100 values"),
        ("(0,1", "unclosed parenthesis"),
        ("0,", "ends where a number"),
        ("0)", r"unexpected '\)'"),
        ("a", "cannot parse 'a'"),
        ("5-1", "empty range"),
        ("1" * 30, "expected a number"),
        ("(" * 20 + "0" + ")" * 20, "too deeply"),
        (",".join(["0-99"] * 2), "more than 100 values"),
        ("0 1", "unexpected '1'"),
    ],
)
def test_a_bad_sequence_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_sequence(text, 100)
