"""Sets of CPUs and NUMA nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numaproof.protocol.sets import LARGEST_MEMBER, CPUSet, ListFormatError, NUMASet

MEMBERS = st.frozensets(st.integers(0, 300), max_size=40)


@given(MEMBERS)
def test_a_set_round_trips_through_text(members: frozenset[int]) -> None:
    made = CPUSet(members)
    assert CPUSet.parse(str(made)) == made
    assert list(made) == sorted(members)
    assert len(made) == len(members)


@given(MEMBERS, MEMBERS)
def test_set_operations_agree_with_pythons(left: frozenset[int], right: frozenset[int]) -> None:
    one, other = CPUSet(left), CPUSet(right)
    assert set(one | other) == left | right
    assert set(one & other) == left & right
    assert set(one - other) == left - right
    assert one.issubset(other) == left.issubset(right)
    assert one.isdisjoint(other) == left.isdisjoint(right)
    assert (one == other) == (left == right)
    assert (hash(one) == hash(other)) or left != right


@given(MEMBERS, st.integers(0, 50))
def test_the_first_n_are_the_lowest(members: frozenset[int], count: int) -> None:
    assert list(CPUSet(members).first(count)) == sorted(members)[:count]


@pytest.mark.parametrize(
    ("text", "members"),
    [("", []), ("0", [0]), ("0-3,8", [0, 1, 2, 3, 8]), (" 5,1 \n", [1, 5]), ("1-1", [1])],
)
def test_the_linux_list_format_is_parsed(text: str, members: list[int]) -> None:
    assert list(CPUSet.parse(text)) == members


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3-1", "is reversed"),
        ("a", "not a number"),
        ("1,", "not a number"),
        ("-1", "not a number"),
        ("1--2", "not a number"),
        ("\u0663", "not a number"),
        (str(LARGEST_MEMBER), "larger than"),
    ],
)
def test_a_malformed_list_is_refused_with_the_bad_part(text: str, complaint: str) -> None:
    with pytest.raises(ListFormatError, match=complaint):
        CPUSet.parse(text)


@pytest.mark.parametrize("member", [-1, LARGEST_MEMBER])
def test_a_member_out_of_range_is_refused(member: int) -> None:
    with pytest.raises(ValueError, match="is out of range"):
        CPUSet([member])


def test_a_set_is_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        CPUSet([1]).mask = 2


def test_sets_have_order_truth_and_repr() -> None:
    assert CPUSet([5]) < CPUSet([0, 6])
    assert not CPUSet()
    assert repr(NUMASet([0, 1])) == "NUMASet.parse('0-1')"
    assert 3 in CPUSet([3])
    assert -1 not in CPUSet([3])
    assert CPUSet([1]) != "1"
    assert CPUSet.union([CPUSet([1]), CPUSet([4])]) == CPUSet([1, 4])


def test_an_overlong_list_is_refused_before_parsing() -> None:
    with pytest.raises(ListFormatError, match="the list has more than 65536 parts") as caught:
        CPUSet.parse("1," * 70_000 + "1")
    assert len(str(caught.value)) < 300
    with pytest.raises(ListFormatError, match="has more than 8 parts"):
        CPUSet.parse("1,1,1,1,1,1,1,1,1", below=8)


@pytest.mark.parametrize("text", ["9" * 5000, "x" * 5000, "5-" + "0" * 5000])
def test_an_error_truncates_a_long_list(text: str) -> None:
    with pytest.raises(ListFormatError) as caught:
        CPUSet.parse(text)
    assert len(str(caught.value)) < 6000 if "-" in text else len(str(caught.value)) < 700
