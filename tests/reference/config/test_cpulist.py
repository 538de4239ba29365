"""CPU lists of a configuration that no machine can mean."""

from __future__ import annotations

import pytest

from numaproof.reference.config import cpulist
from numaproof.reference.errors import NotBuiltError


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("9" * 5000, "value out of range"),
        ("0-" + "9" * 5000, "value out of range"),
        ("9" * 19, "value out of range"),
    ],
)
def test_a_number_that_the_kubelet_cannot_read_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(cpulist.CPUListError, match=complaint):
        cpulist.parse(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("9" * 18, "CPU 999999999999999999; the last one that there can be is 65535"),
        ("0-65535," * 100_000 + "1", "more than 65536 parts"),
    ],
)
def test_a_list_beyond_any_machine_is_no_refusal_of_the_kubelet(text: str, complaint: str) -> None:
    with pytest.raises(NotBuiltError, match=complaint):
        cpulist.parse(text)


def test_leading_zeros_do_not_count() -> None:
    assert str(cpulist.parse("0" * 50 + "7")) == "7"
