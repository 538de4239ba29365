"""A small correct driver, and versions with one thing broken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numaproof.conformance.doctor import program
from numaproof.conformance.doctor.examination import examine
from numaproof.protocol.diagnosis import Diagnosis

DRIVER = Path(__file__).parents[3] / "examples" / "driver.py"
LINE = "            if count > len(free):\n"
FIX = (LINE, LINE + '                del self.allocations[pod["metadata"]["uid"]]\n')
"""The fix for the driver from docs/fuzzing.md."""

Examine = Callable[..., Diagnosis]


@pytest.fixture
def examined_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Examines a Python program in its own folder."""
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    # On a busy machine every program is slow.
    for limit in ("SLOW", "SLOW_START"):
        monkeypatch.setattr(program, limit, 60.0)

    def examine_text(text: str, timeout: float = 10.0) -> Diagnosis:
        file = tmp_path / "program.py"
        file.write_text(text, encoding="utf-8")
        return examine((sys.executable, str(file)), timeout, "tests", scratch)

    return examine_text


@pytest.fixture
def examine_driver(examined_text: Examine) -> Examine:
    """Examines the fixed driver with parts of its text replaced."""

    def examine_with(*replacements: tuple[str, str], timeout: float = 10.0) -> Diagnosis:
        text = DRIVER.read_text("utf-8")
        for old, new in (FIX, *replacements):
            assert old in text, old
            text = text.replace(old, new)
        return examined_text(text, timeout)

    return examine_with
