"""A terminal gets colour; the pages show that other outputs don't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.input_files import KUBELET, POD

if TYPE_CHECKING:
    from conftest import Command

DRIVER = Path(__file__).parents[2] / "examples" / "driver.py"


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", f"python3 {DRIVER}"),
        ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pod.yaml"),
        ("upgrade", "--machine", "laptop-4c8t", "--from", "1.35", "--to", "1.36"),
    ],
    ids=lambda words: words[0],
)
def test_a_terminal_gets_colour(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    Path("kubelet.yaml").write_text(KUBELET)
    Path("pod.yaml").write_text(POD)
    monkeypatch.setattr("numaproof.reports.console.is_live", lambda *_: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert "\x1b[" in command(*words).out
