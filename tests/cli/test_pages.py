"""Every page in `pages/` shows what the command prints.

`NUMAPROOF_WRITE_PAGES=1` updates the pages. Review the diff.
"""

from __future__ import annotations

import io
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.checkout import ROOT
from builders.pages import Shell
from numaproof.conformance.selection import needs

if TYPE_CHECKING:
    from conftest import Command, Ended

PAGES = sorted(Path(__file__).parent.glob("pages/*.txt"))

VARYING = (
    (re.compile(r"Usage: numaproof.*\nTry 'numaproof.*' for help.\n\n"), ""),
    (re.compile(r"^ *\d+\.\d s  \d+ of \d+ done, \d+ failed\n", re.MULTILINE), ""),
    (re.compile(r"\b\d+\.\d+ s\b"), "0.0 s"),
    (re.compile(r" \(_ssl\.c:\d+\)"), ""),
    (re.compile(r'"(at|seconds)":\s?[\d.]+'), r'"\1": 0'),
)
"""Varying output and its replacements: click's usage before errors, progress, times, and lines of
Python's source.
"""


NEEDS = cache(needs.rows)
"""The counts of `numaproof features`, computed once because they take a second or two."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_matches_the_output_of_its_commands(
    page: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(Path.cwd())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((f"{ROOT}/tests", f"{ROOT}/src")))
    monkeypatch.setattr(needs, "rows", NEEDS)

    def ours(words: list[str], environment: dict[str, str], stdin: str) -> Ended:
        with pytest.MonkeyPatch.context() as during:
            for name, value in environment.items():
                during.setenv(name, value)
            during.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(os.fsencode(stdin))))
            return command(*words)

    def hide(text: str) -> str:
        for pattern, instead in VARYING:
            text = pattern.sub(instead, text)
        return text.replace(here, "$PWD").replace(sys.executable, "python")

    text = page.read_text("utf-8")
    shown = Shell(ours, hide).play(text)
    if os.environ.get("NUMAPROOF_WRITE_PAGES"):
        page.write_text(shown, "utf-8")
    else:
        assert shown.splitlines() == text.splitlines()
