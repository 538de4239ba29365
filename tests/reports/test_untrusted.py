from __future__ import annotations

import pytest

from numaproof.reports.untrusted import one_line, shortened, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "⟨U+001B⟩[31mred"),
        ("nul\x00", "nul⟨U+0000⟩"),
        ("a\u202eb\u2066c", "a⟨U+202E⟩b⟨U+2066⟩c"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("lone\ud800", "lone⟨U+D800⟩"),
        ("a\udcff/mine.yaml", "a\\xff/mine.yaml"),
        ("c1\x9b", "c1⟨U+009B⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("kept\tand\nkept\r\n", "kept\tand\nkept\n"),
        ("over\rwritten", "over⟨U+000D⟩written"),
        ("Größe 中文 ✓", "Größe 中文 ✓"),
    ],
)
def test_hidden_characters_are_shown_by_their_code_points(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_line_has_no_line_breaks_and_keeps_to_its_limit() -> None:
    assert one_line("a\n b\t\tc", 10) == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_long_text_is_cut_with_a_note_of_where_the_whole_is() -> None:
    assert shortened("x" * 10, 10) == "x" * 10
    assert (
        shortened("x" * 15, 10)
        == "x" * 10 + "\n… cut after 10 characters; events.jsonl has the whole text"
    )
