from __future__ import annotations

import json

from numaproof.reports.values import (
    ABSENT,
    Difference,
    compact,
    diff_lines,
    differences,
    pretty,
    without_machine,
)


def test_what_fits_on_a_line_is_on_one() -> None:
    value = {"a": [1, 2, 3], "b": {"long": "x" * 30, "longer": "y" * 30}, "c": []}
    text = pretty(value, 60)
    assert '  "a": [1, 2, 3],' in text.split("\n")
    assert json.loads(text) == value


def test_lists_are_laid_out_too() -> None:
    value = [["x" * 30], ["y" * 30]]
    assert pretty(value, 20).split("\n")[:3] == ["[", "  [", f'    "{"x" * 30}"']
    assert json.loads(pretty(value, 20)) == value


def test_a_value_nested_without_end_does_not_break_the_page() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert "(nested too deeply)" in compact(deep)
    assert "(nested too deeply)" in pretty(deep)
    assert differences(deep, [1])
    assert diff_lines(deep, deep) == (("…", ""),)


def test_differences_are_the_smallest_places_that_differ() -> None:
    expected = {"ok": {"cpus": "1", "list": [1, 2], "gone": True}}
    got = {"ok": {"cpus": "2", "list": [1, 3], "new": None}}
    assert differences(expected, got) == (
        Difference("ok.cpus", '"1"', '"2"'),
        Difference("ok.list[1]", "2", "3"),
        Difference("ok.gone", "true", ABSENT),
        Difference("ok.new", ABSENT, "null"),
    )


def test_lists_of_other_lengths_and_other_types_differ_as_a_whole() -> None:
    assert differences({"a": [1]}, {"a": [1, 2]}) == (Difference("a", "[1]", "[1, 2]"),)
    assert differences(1, True) == (Difference("(answer)", "1", "true"),)
    assert differences({"a": 1}, {"a": 1}) == ()


def test_the_order_of_keys_is_no_difference_line_by_line() -> None:
    assert diff_lines({"a": 1, "b": 2}, {"b": 2, "a": 1}) == (("…", ""),)


def test_changed_lines_are_marked_by_side() -> None:
    lines = diff_lines({"a": "x" * 60, "b": 1}, {"a": "x" * 60, "b": 2}, 40)
    assert ("-", '  "b": 1') in lines
    assert ("+", '  "b": 2') in lines


def test_a_machine_among_arguments_becomes_a_phrase() -> None:
    args = {"machine": {"num_cores": 8, "topology": [{}, {}]}, "count": 2}
    assert without_machine(args) == {"machine": "(machine with CPUs 8, NUMA nodes 2)", "count": 2}
    assert without_machine({"machine": {"topology": None}})["machine"].endswith("NUMA nodes 0)")
    assert without_machine({"uid": "1"}) == {"uid": "1"}
