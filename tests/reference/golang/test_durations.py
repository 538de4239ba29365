"""Durations of a configuration, and the words in which Go refuses them."""

from __future__ import annotations

import pytest

from numaproof.reference.golang import durations


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", 0),
        ("+0", 0),
        ("-1s", -(10**9)),
        ("1h30m", 5400 * 10**9),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("1µs1μs1us", 3000),
        ("9223372036854775807ns", (1 << 63) - 1),
        ("-9223372036854775808ns", -(1 << 63)),
        ("0" * 100_000 + "1s", 10**9),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, length: int) -> None:
    assert durations.nanoseconds(text) == length


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("soon", 'invalid duration "soon"'),
        (".s", 'invalid duration ".s"'),
        ("1s.", 'invalid duration "1s."'),
        ("10", 'missing unit in duration "10"'),
        ("00", 'missing unit in duration "00"'),
        ("1h30", 'missing unit in duration "1h30"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("10 s", 'unknown unit " s" in duration "10 s"'),
        ('1"é', r'unknown unit "\"\xc3\xa9" in duration "1\"\xc3\xa9"'),
        ("9223372036854775808ns", 'invalid duration "9223372036854775808ns"'),
        ("9999999h", 'invalid duration "9999999h"'),
        ("99999999999999999999", 'invalid duration "99999999999999999999"'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text: str, complaint: str) -> None:
    with pytest.raises(durations.DurationError) as refusal:
        durations.nanoseconds(text)
    assert str(refusal.value) == f"time: {complaint}"


def test_a_unit_behind_thousands_of_zeros_is_refused_at_once() -> None:
    with pytest.raises(durations.DurationError, match='unknown unit "x"'):
        durations.nanoseconds("0" * 100_000 + "x")
