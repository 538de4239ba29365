"""Hostile programs are reported; they leave no process behind and change nothing outside.

Each test runs `numaproof` in a separate process and measures its memory.
`tests/builders/hostile.py` reads the programs from `hostile.yaml`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest

from builders.hostile import HOSTILE, Hostile
from numaproof.conformance.cases import writing
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.reference.implementation import Reference
from numaproof.reports.files import FILES

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 20
"""In KiB, the kernel's unit."""

MEASURED = """
import resource, runpy, sys
sys.argv[0] = "numaproof"
if sys.argv[1] == "diff":
    from numaproof.conformance.differential import diff
    diff._SHRINK_SECONDS = 5.0
try:
    runpy.run_module("numaproof", run_name="__main__")
finally:
    own, below = (resource.getrusage(of).ru_maxrss
                  for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print("PEAK", own, below, file=sys.stderr)
"""

CASE = """
cases:
- id: hostile
  title: State is restored, or damage to it is found
  requirements: [CPU-CHECKPOINT-001]
  level: invariants
  machines: {names: [laptop-4c8t]}
  config: {cpuManagerPolicy: static, reservedSystemCPUs: "0"}
  steps:
  - start: {}
    expect: anything
  - admit: {pod: a, containers: {c: {limits: {cpu: 1, memory: 1Gi}}}}
    expect: anything
  - tamper: {file: cpu_manager_state, how: checksum}
  - start: {}
    expect: anything
"""


@dataclass
class Attack:
    """A hostile program and its surroundings."""

    folder: Path
    program: Hostile

    def __post_init__(self) -> None:
        self.file = self.folder / "hostile.py"
        self.file.write_text(self.program.source())
        self.outside = self.folder / "outside"
        self.outside.mkdir()
        (self.outside / "kept").write_text("kept")
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        own = self.folder / "own"
        own.mkdir()
        self.cases = self.folder / "case.yaml"
        self.cases.write_text(CASE)
        finding = seeded_scenario(0, Capabilities(Reference().hello(hello_args("tests")), "1.35"))
        (self.folder / "finding.yaml").write_text(writing.text(finding))
        held = self.folder / "held"
        os.mkfifo(held)
        self._reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
        self.environment = {
            **os.environ,
            "HELD": str(held),
            "OUTSIDE": str(self.outside),
            "OWN": str(own),
            "TMPDIR": str(self.temporary),
        }

    @property
    def command(self) -> str:
        """The command that runs the program."""
        return shlex.join([sys.executable, str(self.file)])

    def run(self, *args: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs `numaproof` and checks what it leaves behind."""
        ended = subprocess.run(
            [sys.executable, "-c", MEASURED, *args],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert "Traceback" not in re.sub(r"(?s)\nThe end of its standard error.*", "", ended.stderr)
        peak = re.search(r"PEAK (\d+) (\d+)", ended.stderr)
        assert peak, ended.stderr
        assert max(map(int, peak.groups())) < GIB
        self.look_around()
        return ended

    def look_around(self) -> None:
        """Asserts that no process lives, nothing outside has changed, and nothing is left."""
        try:
            assert os.read(self._reader, 1) == b""
        except BlockingIOError:
            pytest.fail("a process is left")
        assert [one.name for one in self.outside.iterdir()] == ["kept"]
        assert (self.outside / "kept").read_text() == "kept"
        left = {one.name for one in self.temporary.iterdir()}
        assert not {one for one in left if one.startswith("numaproof")}

    def close(self) -> None:
        os.close(self._reader)


def attack(folder: Path, name: str) -> Attack:
    return Attack(folder, HOSTILE[name])


def patience(program: Hostile) -> tuple[str, ...]:
    """Returns a timeout: short for programs that hang, long for others."""
    return ("--timeout", "5s" if "no answer" in program.words else "60s")


def check_report(attack: Attack) -> str:
    """Returns the report of `numaproof check` with a case that needs state."""
    options = ("--cases", str(attack.cases), "--machine", "laptop-4c8t", *patience(attack.program))
    chosen = ("--select", "hostile", "--out", str(attack.folder / "out"), "--level", "placement")
    attack.run("check", "--implementation", attack.command, *options, *chosen)
    assert {file.name for file in (attack.folder / "out").iterdir()} == set(FILES)
    return (attack.folder / "out" / "report.md").read_text()


EVERY = "NUMAPROOF_HOSTILE" in os.environ

FAST = (
    "link-in-state",
    "endless-in-state",
    "parent-is-a-link",
    "deep-folders",
    "daemons-200",
    "closes-output",
)

ONE_OF_A_KIND = (
    "hard-link-to-outside",
    "kills-its-supervisor",
    "stops-its-supervisor",
    "daemon-and-death",
    "out-of-memory",
    "silence",
    "flood",
    "half-a-line-and-death",
)
"""The programs played with the regular tests. `tests/conformance/execution` and `tests/workdir`
play more of each kind, without the command.
"""


@pytest.mark.parametrize(
    "name",
    [
        one if one in FAST else pytest.param(one, marks=pytest.mark.slow)
        for one in (HOSTILE if EVERY else (*FAST, *ONE_OF_A_KIND))
    ],
)
def test_a_hostile_program_is_reported_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    one = attack(tmp_path, name)
    report = check_report(one)
    assert re.search(one.program.words or "1 case run", report), report
    one.close()


COMMANDS = {
    "fuzz": ("fuzz", "--examples", "3", "--seed", "1", "--implementation"),
    "campaign": (
        *("campaign", "--no-cases", "--seeds", "0:1", "--workers", "1", "--shrink", "0"),
        "--implementation",
    ),
    "diff": ("diff", "--seeds", "0:1", "--tries", "1", "--right"),
    "promote": (
        *("promote", "finding.yaml", "--id", "hostile-is-survived", "--out", "made.yaml"),
        *("--requirement", "CPU-CHECKPOINT-001", "--implementation"),
    ),
    "record": (
        *("record", "--seeds", "0:1", "--merges", "0:1", "--out", "made.jsonl.xz"),
        "--implementation",
    ),
}


def program_command_pairs() -> list[tuple[str, str]]:
    """Pairs of program and command: a few, or all if `NUMAPROOF_HOSTILE` is set."""
    if EVERY:
        return list(product(HOSTILE, COMMANDS))
    return list(zip(FAST, COMMANDS, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), program_command_pairs())
def test_every_command_reports_a_hostile_program(tmp_path: Path, name: str, command: str) -> None:
    one = attack(tmp_path, name)
    first, *others = COMMANDS[command]
    ended = one.run(first, *patience(one.program), *others, one.command)
    assert ended.returncode in {0, 1, 2, 3}
    said = ended.stdout + ended.stderr
    assert said
    assert re.search(one.program.words, said), said
    one.close()


def test_there_are_sixty_hostile_programs() -> None:
    assert len(HOSTILE) >= 60
    assert {*FAST, *ONE_OF_A_KIND} <= {*HOSTILE}
