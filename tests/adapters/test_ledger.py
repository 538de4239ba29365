"""The ledger shared by Python adapters: it keeps the invariants without hiding violations."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "adapters"

pytestmark = pytest.mark.commands


def run_check(folder: Path, *words: str) -> tuple[int, dict[str, int]]:
    """Checks the program on a small machine; returns the exit code and the case runs by outcome."""
    for file in (ADAPTERS / "common" / "python").glob("*.py"):
        shutil.copy(file, folder)
    shutil.copy(Path(__file__).parent / "common" / "lowest_node.py", folder)
    program = shlex.join([sys.executable, str(folder / "lowest_node.py"), *words])
    line = ["check", "--implementation", program, "--machine", "laptop-4c8t", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof", *line, "--out", str(folder / "report")],
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes: dict[str, int] = json.loads(ended.stdout)["outcomes"]
    return ended.returncode, outcomes


def test_the_ledger_keeps_pods_for_an_allocator_without_pods(tmp_path: Path) -> None:
    code, outcomes = run_check(tmp_path)
    assert code == 0
    assert outcomes["pass"] > 30


def test_assigning_a_cpu_twice_is_caught(tmp_path: Path) -> None:
    code, outcomes = run_check(tmp_path, "greedy")
    assert code == 1
    assert outcomes["fail"] > 0
