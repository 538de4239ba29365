"""Patterns match as documented and in reasonable time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numaproof.fakesys import Profile, ProfileError, build_tree, load_profile
from numaproof.fakesys.tree import Pattern, PatternError

_PARTS = st.lists(st.sampled_from(["a", "1", "11", "{1,11}", "*", "{0-2}"]), min_size=1, max_size=5)


@given(
    st.lists(_PARTS.filter(lambda part: part.count("*") <= 2), min_size=1, max_size=4),
    st.lists(st.text("a012", min_size=1, max_size=6), min_size=1, max_size=5),
)
def test_a_pattern_matches_like_an_exhaustive_search(
    pattern: list[list[str]], path: list[str]
) -> None:
    words = {"{1,11}": "(?:1|11)", "{0-2}": "(?:0|1|2)", "*": "[^/]*"}
    slow = "/".join("".join(words.get(one, one) for one in part) for part in pattern)
    whole = "proc/" + "/".join(path)
    made = Pattern("proc/" + "/".join("".join(part) for part in pattern))
    assert made.covers(whole) == bool(re.fullmatch(f"proc/{slow}(?:/.*)?", whole))


def test_a_pattern_failing_at_its_last_part_fails_fast() -> None:
    # Each part matches in hundreds of ways; trying all combinations would take forever.
    pattern = Pattern("proc/" + "*a*/" * 40 + "x")
    assert not pattern.covers("proc/" + ("a" * 50 + "/") * 40 + "y")


def test_numbers_are_limited_over_the_whole_pattern() -> None:
    with pytest.raises(PatternError, match=r"has 10,000 numbers; the limit is 8,192"):
        Pattern("cpu/{0-4999}/{0-4999}")


def test_patterns_are_limited_by_the_files_they_match() -> None:
    machine = load_profile("laptop-4c8t")
    fields = {name: getattr(machine, name) for name in Profile.__struct_fields__}
    for field in ("lacks", "trailing_nul"):
        many = Profile(**fields | {field: ("cpu/cpu0/online",) * 1_000_000})
        with pytest.raises(ProfileError, match=f"{field}: 1,000,000 patterns are too many for"):
            build_tree(many)


def test_a_file_cannot_replace_a_needed_directory() -> None:
    machine = load_profile("laptop-4c8t")
    fields = {name: getattr(machine, name) for name in Profile.__struct_fields__}
    twice = Profile(**fields | {"files": {"cpu/new/file": "x", "cpu/new": "y"}})
    with pytest.raises(ProfileError, match="new is a directory or a link"):
        build_tree(twice)
