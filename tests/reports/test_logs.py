"""What a report shows of a long log."""

from __future__ import annotations

import pytest

from numaproof.reports.story import both_ends


def test_a_short_log_is_shown_as_it_is() -> None:
    assert both_ends("one\n  two\n", 6) == "one\n  two"
    assert both_ends("", 6) == ""


@pytest.mark.parametrize(
    ("head", "end"),
    [
        ("Traceback (most recent call last):", "KeyError: 'cpus'"),
        ("panic: runtime error: index out of range [3]", "exit status 2"),
        ('Exception in thread "main" java.lang.IllegalStateException: no CPU', "\tat Main.main"),
        ("TypeError: Cannot read properties of undefined", "    at Interface.<anonymous>"),
        ("thread 'main' panicked at src/pool.rs:12:5:", "note: run with RUST_BACKTRACE=1"),
    ],
)
def test_of_a_long_log_the_head_of_the_trace_and_the_end_are_shown(head: str, end: str) -> None:
    log = "\n".join([*("chatter" for _ in range(30)), head, *("frame" for _ in range(40)), end])
    assert both_ends(log, 6).split("\n") == [
        "… 30 lines before …",
        head,
        "frame",
        "frame",
        "… 36 lines between …",
        "frame",
        "frame",
        end,
    ]


def test_a_long_log_without_a_trace_is_shown_from_its_beginning() -> None:
    log = "\n".join(str(number) for number in range(10))
    assert both_ends(log, 4) == "0\n1\n… 6 lines between …\n8\n9"


def test_a_short_trace_after_much_chatter_is_shown_whole() -> None:
    log = "\n".join([*("chatter" for _ in range(30)), "panic: oh", "main.main()"])
    assert both_ends(log, 6) == "… 30 lines before …\npanic: oh\nmain.main()"


def test_the_ends_of_a_long_line_are_shown() -> None:
    shown = both_ends("a" * 5000 + "z", 6)
    assert shown.startswith("aaa")
    assert shown.endswith("aaz")
    assert len(shown) < 600
