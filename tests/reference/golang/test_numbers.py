"""Numbers as Go reads them."""

from __future__ import annotations

import pytest

from numaproof.reference.golang.numbers import (
    NumeralError,
    leading_signed,
    leading_unsigned,
    signed,
    unsigned,
)
from numaproof.reference.golang.text import quote


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0007", 7),
        ("-9223372036854775808", -(1 << 63)),
        ("9223372036854775807", (1 << 63) - 1),
        ("0" * 5000 + "3", 3),
    ],
)
def test_whole_numbers_have_64_bits_and_a_sign(text: str, value: int) -> None:
    assert signed(text) == value


def test_unsigned_numbers_reach_as_far_as_64_bits() -> None:
    assert unsigned("18446744073709551615") == (1 << 64) - 1


@pytest.mark.parametrize("text", ["", "+", "--1", " 1", "1 ", "1.0", "1e3", "9223372036854775808x"])
def test_anything_beside_the_digits_is_invalid_syntax(text: str) -> None:
    with pytest.raises(NumeralError) as refused:
        signed(text)
    assert str(refused.value) == f'strconv.Atoi: parsing "{text}": invalid syntax'


@pytest.mark.parametrize(
    "text",
    ["9223372036854775808", "-9223372036854775809", "-99999999999999999999", "9" * 5000],
)
def test_a_number_that_does_not_fit_is_out_of_range(text: str) -> None:
    with pytest.raises(NumeralError) as refused:
        signed(text)
    assert str(refused.value) == f'strconv.Atoi: parsing "{text}": value out of range'


def test_one_digit_too_many_is_seen_before_what_follows_it() -> None:
    with pytest.raises(NumeralError, match="value out of range"):
        signed("99999999999999999999x")


def test_an_unsigned_number_refuses_a_sign_before_its_range() -> None:
    with pytest.raises(NumeralError, match=r"ParseUint.*invalid syntax"):
        unsigned("-99999999999999999999")


@pytest.mark.parametrize(
    ("text", "value"),
    [("7K", 7), (" \t\r7", 7), ("-7x", -7), ("\n7", None), ("x7", None), ("- 7", None)],
)
def test_a_leading_number_may_follow_white_space_within_the_line(
    text: str, value: int | None
) -> None:
    assert leading_signed(text) == value


def test_a_unit_follows_its_number_directly() -> None:
    assert leading_unsigned("7K", unit="K") == 7
    assert leading_unsigned("7 K", unit="K") is None


def test_quoting_escapes_what_does_not_print() -> None:
    text = 'a"\\\a\b\f\n\r\t\v\x01\x7f é\u200b\U000e0001\udcff'
    assert quote(text) == r'"a\"\\\a\b\f\n\r\t\v\x01\x7f é\u200b\U000e0001\xff"'
