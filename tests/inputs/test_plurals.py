"""Counts and nouns agree."""

from __future__ import annotations

from numaproof.inputs.plurals import format_count, format_numbers, plural
from numaproof.protocol.sets import CPUSet


def test_only_one_is_singular() -> None:
    assert [plural(count, "core") for count in (0, 1, 2000)] == ["0 cores", "1 core", "2,000 cores"]


def test_a_set_has_its_noun_and_an_empty_one_is_in_words() -> None:
    sets = [CPUSet.parse(text) for text in ("", "3", "0-3")]
    assert [format_numbers("CPU", one) for one in sets] == ["no CPUs", "CPU 3", "CPUs 0-3"]
    assert [format_count("CPU", one) for one in sets] == ["0 CPUs", "1 CPU (3)", "4 CPUs (0-3)"]
