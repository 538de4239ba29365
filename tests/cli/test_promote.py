"""`numaproof promote`: from a finding to a case that `numaproof check` runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.checkout import ROOT

Command = Callable[..., Any]

SEEDED = f"""\
import sys

sys.path.insert(0, {str(ROOT)!r})
from quality.catalogue import BUGS
from numaproof.reference.server import serve

(bug,) = (one for one in BUGS if one.id == sys.argv[1])
with bug.seeded():
    serve(sys.stdin.buffer, sys.stdout.buffer)
"""


def seeded(bug: str) -> str:
    """The command of a reference with a bug in it."""
    Path("seeded.py").write_text(SEEDED)
    return shlex.join([sys.executable, str(Path("seeded.py").resolve()), bug])


@pytest.mark.slow
def test_a_bug_that_fuzzing_finds_is_a_case_that_fails_until_it_is_fixed(
    command: Command,
) -> None:
    buggy = ("--implementation", seeded("single-threads-come-before-whole-cores"))
    said = ("--requirement", "CPU-STATIC-009")
    found = command("fuzz", *buggy, "--seed", "1", "--max-examples", "200", "--json")
    (divergence,) = found.json()["divergences"]
    ended = command("promote", divergence["file"], "--id", "static-found", *said, *buggy)
    assert ended.code == 0, ended.err
    told, failed, *sides, now, again = ended.out.splitlines()
    assert failed.startswith("numaproof reference fails it: fail: ")
    assert [line.split()[0] for line in sides] in ([], ["expected", "got"])
    assert told.startswith("numaproof-cases.yaml: static-found, level ")
    check = shlex.split(now.removeprefix("now run: numaproof "))
    assert check == ["check", "--select", "static-found", "--cases", "numaproof-cases.yaml"]
    assert command(*check).code == 0
    assert command(*check, "--as", "documented").code == 0
    assert shlex.split(again)[:2] == ["and:", "numaproof"]
    assert command(*shlex.split(again)[2:]).code == 1
