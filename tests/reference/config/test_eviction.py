"""Hard eviction thresholds in the configuration."""

from __future__ import annotations

import pytest

from numaproof.reference.config import eviction

GI = 1 << 30
FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("signal", "text", "problem"),
    [
        ("foo", "1Gi", "unsupported eviction signal foo"),
        ("Memory.available", "1Gi", "unsupported eviction signal Memory.available"),
        ("memory.available", "x", FORM),
        ("pid.available", "", FORM),
        ("memory.available", "-1Gi", "eviction threshold memory.available must be positive: -1Gi"),
        ("nodefs.available", "-1000", "eviction threshold nodefs.available must be positive: -1k"),
        ("nodefs.available", "-1e3", "eviction threshold nodefs.available must be positive: -1e3"),
        ("memory.available", "0Mi", "eviction threshold memory.available must be positive: 0"),
    ],
)
def test_a_bad_threshold_is_reported_for_every_signal(signal: str, text: str, problem: str) -> None:
    with pytest.raises(eviction.ThresholdError) as told:
        eviction.check({signal: text})
    assert str(told.value) == problem


@pytest.mark.parametrize("text", ["-5%", "-inf%"])
def test_a_share_below_nothing_is_refused(text: str) -> None:
    with pytest.raises(eviction.ThresholdError, match=f"must be >= 0%: {text}"):
        eviction.check({"memory.available": text})


@pytest.mark.parametrize("text", ["150%", "inf%", "100.00001%", "3.4028235e38%"])
def test_a_share_above_all_is_refused(text: str) -> None:
    with pytest.raises(eviction.ThresholdError, match=f"must be <= 100%: {text}"):
        eviction.check({"memory.available": text})


@pytest.mark.parametrize(
    "text", ["x", "", " 5", "5 ", "0x10", "1__0", "_1", "1_", "0b1", ".", "e5", "+nan"]
)
def test_what_go_does_not_read_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(eviction.ThresholdError) as told:
        eviction.check({"memory.available": f"{text}%"})
    assert str(told.value) == f'strconv.ParseFloat: parsing "{text}": invalid syntax'


@pytest.mark.parametrize("text", ["1e50", "1e400", "3.40282357e38"])
def test_a_share_beyond_a_float_of_32_bits_is_refused(text: str) -> None:
    with pytest.raises(eviction.ThresholdError, match="value out of range"):
        eviction.check({"memory.available": f"{text}%"})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0%", None),
        ("100%", None),
        ("-0%", None),
        ("1e-50%", None),
        ("100.0%", "16Gi"),
        ("99.9999999%", "16Gi"),
        ("5%%", "858993472"),
        ("1_0%", "1717986944"),
        ("0x1p4%", "2748779008"),
        ("nan%", "-8Ei"),
        ("1500m", "1500m"),
    ],
)
def test_a_share_is_one_of_the_memory_that_there_is(text: str, size: str | None) -> None:
    thresholds = {"memory.available": text}
    eviction.check(thresholds)
    assert eviction.of_memory(thresholds, 16 * GI) == size


def test_without_a_threshold_for_memory_there_is_none() -> None:
    assert eviction.of_memory({"nodefs.available": "10%"}, GI) is None
