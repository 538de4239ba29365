from __future__ import annotations

from numaproof.reports.story import both_ends
from numaproof.reports.values import compact, diff_lines, differences, pretty


def test_a_deeply_nested_value_does_not_break_the_page() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    assert "(nested too deeply)" in compact(deep)
    assert "(nested too deeply)" in pretty(deep)
    assert differences(deep, [1])
    assert diff_lines(deep, deep) == (("…", ""),)


def test_the_ends_of_a_long_line_are_shown() -> None:
    shown = both_ends("a" * 5000 + "z", 6)
    assert shown.startswith("aaa")
    assert shown.endswith("aaz")
    assert len(shown) < 600
