"""The excerpts in the guide to fuzzing are in the files that they are from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/fuzzing.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("file", ["driver.py", "test_driver.py", "tox.ini"])
def test_excerpts_in_guides_match_their_files(file: str) -> None:
    text = (ROOT / "examples" / file).read_text()
    kind = "ini" if file == "tox.ini" else "python"
    shown = [block for one, block in BLOCK.findall(GUIDE) if one == kind]
    ours = [block for block in shown if block.splitlines()[0] in text]
    assert ours
    for block in ours:
        for paragraph in block.split("\n\n"):
            assert paragraph.strip("\n") in text
