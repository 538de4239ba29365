"""`numaproof doctor --transcript` writes every line of the dialogue in full."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_a_transcript_has_every_line_in_full(command: Command) -> None:
    long = "x" * 300
    Path("driver.py").write_text(f"print(input()[:0] + '{long}\\x1b[2J')\n")
    driver = f"{sys.executable} driver.py"
    ended = command("doctor", driver, "--transcript", "doctor.txt")
    assert ended.code == 1
    assert ended.err == "numaproof: the dialogue is in doctor.txt\n"
    first, platform, empty, *lines = Path("doctor.txt").read_text("utf-8").splitlines()
    assert first.startswith("numaproof ")
    assert first.endswith(f" doctor {driver}")
    assert "Python" in platform
    assert not empty
    assert f"     ← {long}⟨U+001B⟩[2J" in lines
    assert long not in ended.out
    assert any("not JSON" in line for line in lines)


def test_a_kubelet_has_no_dialogue(command: Command) -> None:
    ended = command("doctor", "--kubelet", sys.executable, "--transcript", "doctor.txt")
    assert ended.code == 2
    assert "--transcript and --kubelet exclude each other; remove one" in ended.err
