"""A small correct driver, and the same with one thing broken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from numaproof.conformance.diagnosis.examination import examine
from numaproof.protocol.diagnosis import Diagnosis

DRIVER = Path(__file__).parents[3] / "examples" / "driver.py"
FIX = (
    "            if count > len(free):\n",
    '            if count > len(free):\n                del self.held[pod["metadata"]["uid"]]\n',
)
"""What docs/fuzzing.md adds to the driver to repair it."""

Examine = Callable[..., Diagnosis]


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Examines the repaired driver with pieces of its text replaced, in a folder of its own."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)

    def examined(*replaced: tuple[str, str], timeout: float = 10.0) -> Diagnosis:
        text = DRIVER.read_text("utf-8")
        for old, new in (FIX, *replaced):
            assert old in text, old
            text = text.replace(old, new)
        return examine_text(tmp_path, text, timeout)

    return examined


def examine_text(folder: Path, text: str, timeout: float = 10.0) -> Diagnosis:
    """Examines a Python program."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    scratch = folder / "scratch"
    scratch.mkdir()
    return examine((sys.executable, str(program)), timeout, "tests", scratch)
