from __future__ import annotations

from fractions import Fraction

import pytest

from numaproof.reference.errors import NotBuiltError
from numaproof.reference.pods import quantity


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("0", 0, 0),
        ("2", 2, 2000),
        ("100m", 1, 100),
        ("1500m", 2, 1500),
        ("1.5", 2, 1500),
        (".5", 1, 500),
        ("1.", 1, 1000),
        (".", 0, 0),
        ("+3", 3, 3000),
        ("-1500m", -1, -1500),
        ("1e3", 1000, 1000000),
        ("1E3", 1000, 1000000),
        ("1e-3", 1, 1),
        ("1k", 1000, 1000000),
        ("1Ki", 1024, 1024000),
        ("1.5Ki", 1536, 1536000),
        ("2Gi", 2 << 30, 2000 << 30),
        ("1E", 10**18, 10**21),
        ("1Ei", 1 << 60, 1000 << 60),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("0.0000000001", 1, 1),
        (2, 2, 2000),
        (0.5, 1, 500),
    ],
)
def test_a_quantity_is_read_exactly_and_rounded_up(
    text: str | float, value: int, milli: int
) -> None:
    assert quantity.value(text) == value
    assert quantity.milli_value(text) == milli


def test_suffixes_are_powers_of_a_thousand_and_of_1024() -> None:
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3):
        assert quantity.parse(f"7{suffix}") == 7 * Fraction(1000) ** power
    for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1):
        assert quantity.parse(f"7{suffix}") == 7 * 1024**power


@pytest.mark.parametrize("text", ["", "x", "-x", "1 ", " 1", "1z", "1.5 Gi", "--1", "1KiB"])
def test_the_refusal_of_a_malformed_quantity_shows_the_form(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match="must match the regular expression"):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["1e", "1Ek", "1ki", "1mm", "1.2.3"])
def test_a_wrong_suffix_is_named_as_such(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match="unable to parse quantity's suffix"):
        quantity.parse(text)


def test_an_exponent_that_no_machine_has_is_refused_rather_than_computed() -> None:
    with pytest.raises(NotBuiltError, match="an exponent beyond 400"):
        quantity.parse("1e999999999")


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("2", 2), ("2000m", 2), ("2.0", 2), ("0", 0), ("1500m", None), ("1.9999", 2)],
)
def test_only_whole_cpus_at_milli_precision_count_as_whole(text: str, cpus: int | None) -> None:
    assert quantity.whole_cpus(text) == cpus


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1Gi", 1 << 30),
        ("1.5e1", 15),
        ("1.500k", 1500),
        ("999999999999999999", 10**18 - 1),
        ("1e18", 10**18),
        ("1500m", None),
        # The kubelet keeps these as decimals of any length, and says that they are no integers.
        ("1.50e1", None),
        ("1.5000k", None),
        ("2.0", None),
        ("1.5Gi", None),
        ("1.0Ki", None),
        ("1000000000000000000", None),
        ("1e19", None),
    ],
)
def test_only_short_whole_numbers_are_integers_to_the_kubelet(
    text: str, number: int | None
) -> None:
    assert quantity.exact(text) == number


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0Mi", "0"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("0.1Gi", "107374182400m"),
        ("-1.5Gi", "-1536Mi"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1.5", "1500m"),
        ("0.000000001", "1n"),
        ("12e4", "120e3"),
        ("3e2", "300"),
        ("1E-3", "1e-3"),
        ("1e21", "1e21"),
        ("1E", "1E"),
        ("1000E", "1"),
    ],
)
def test_a_quantity_is_written_in_its_style(text: str, written: str) -> None:
    assert quantity.canonical(quantity.parse(text), quantity.style(text)) == written


@pytest.mark.parametrize("text", ["1" * 4301, "0." + "1" * 4301, "1e" + "1" * 4301])
def test_a_quantity_that_is_longer_than_any_amount_is_refused(text: str) -> None:
    with pytest.raises(NotBuiltError, match="more than 500 characters"):
        quantity.parse(text)
