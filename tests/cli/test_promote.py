"""`numaproof promote`: from a finding to a case that `numaproof check` runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.checkout import ROOT
from builders.input_files import FINDING

Command = Callable[..., Any]
Program = Callable[[str], str]

SEEDED = f"""\
import sys

sys.path.insert(0, {str(ROOT)!r})
from quality.catalogue import BUGS
from numaproof.reference.server import serve

(bug,) = (one for one in BUGS if one.id == sys.argv[1])
with bug.seeded():
    serve(sys.stdin.buffer, sys.stdout.buffer)
"""

OWN = Path("numaproof-cases.yaml")


def seeded(bug: str) -> str:
    """The command of a reference with a bug in it."""
    Path("seeded.py").write_text(SEEDED)
    return shlex.join([sys.executable, str(Path("seeded.py").resolve()), bug])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("released-cpus-are-lost", ()),
        ("single-threads-come-before-whole-cores", ("--requirement", "CPU-STATIC-009")),
    ],
)
def test_a_bug_that_fuzzing_finds_is_a_case_that_fails_until_it_is_fixed(
    command: Command, bug: str, said: tuple[str, ...]
) -> None:
    buggy = ("--implementation", seeded(bug))
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


def test_a_promoted_case_passes_and_the_command_that_runs_it_is_shown(command: Command) -> None:
    Path("finding.yaml").write_text(FINDING)
    ended = command("promote", "finding.yaml", "--id", "static-one", "--title", "One")
    assert ended.code == 0
    assert ended.out == (
        "numaproof-cases.yaml: static-one, level invariants, CPU-STATIC-007\n"
        "now run: numaproof check --select static-one --cases numaproof-cases.yaml\n"
    )
    assert "    expect:\n      containers:\n        app: {exclusive: 1}\n" in OWN.read_text()
    checked = command("check", "--select", "static-one", "--cases", OWN, "--json")
    assert checked.json()["outcomes"] == {"pass": 1}


def test_a_path_that_is_no_utf_8_is_shown_as_a_shell_reads_it(command: Command) -> None:
    Path("finding.yaml").write_text(FINDING)
    ended = command("promote", "finding.yaml", "--id", "static-one", "--into", "a\udcff.yaml")
    named, now = ended.out.splitlines()
    assert named.startswith("a\\xff.yaml: static-one, ")
    assert now.endswith(r" --cases $'a\xff.yaml'")
    line = now.removeprefix("now run: ").replace("numaproof", f"{sys.executable} -m numaproof", 1)
    assert subprocess.run(["bash", "-c", line], check=False, capture_output=True).returncode == 0


def test_more_is_added_to_the_file_that_is_there(command: Command) -> None:
    Path("finding.yaml").write_text(FINDING)
    Path("own").mkdir()
    Path("own/mine.yaml").write_text("# Mine.\n" + FINDING.replace("id: fuzz", "id: my-own"))
    into = ("--into", "own/mine.yaml")
    assert command("promote", "finding.yaml", "--id", "static-one", *into).code == 0
    assert Path("own/mine.yaml").read_text().startswith("# Mine.\n" + FINDING[:7])
    checked = command("check", "--select", "my-own", "--cases", "own", "--json")
    assert checked.json()["outcomes"] == {"pass": 1}


def test_in_a_checkout_the_case_goes_to_its_cases(command: Command) -> None:
    Path("finding.yaml").write_text(FINDING)
    Path("conformance/suite").mkdir(parents=True)
    ended = command("promote", "finding.yaml", "--id", "static-one", "--level", "placement")
    assert ended.code == 0
    assert Path("conformance/suite/promoted.yaml").exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--id", "pool-begins-with-all-cpus"), "there is a case pool-begins"),
        (("--id", "my-own"), "there is a case my-own already"),
        (("--id", "One"), "'One' is no id"),
        (("--id", "static-one", "--requirement", "CPU-STATIC-7"), "there is no requirement"),
        (("--id", "static-one", "--defect", "none"), "'none' is not one of"),
        (("--id", "static-one", "--into", "brackets.yaml"), "brackets.yaml:1: cases: "),
        (("--id", "static-one", "--into", "binary.yaml"), "binary.yaml:1: not UTF-8"),
        (("--id", "static-one", "--implementation", "lost-program"), "lost-program"),
        ((), "Missing option '--id'"),
    ],
)
def test_what_can_not_be_is_2_and_leaves_the_file_as_it_was(
    command: Command, args: tuple[str, ...], complaint: str
) -> None:
    Path("finding.yaml").write_text(FINDING)
    OWN.write_text(FINDING.replace("id: fuzz", "id: my-own"))
    Path("brackets.yaml").write_text("cases: []\n")
    Path("binary.yaml").write_bytes(b"\xff")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    ended = command("promote", "finding.yaml", *args)
    assert ended.code == 2
    assert complaint in ended.err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_finding_that_the_implementation_passes_is_2(command: Command, program: Program) -> None:
    Path("finding.yaml").write_text(FINDING)
    mended = ("--implementation", program("answer(request)"))
    ended = command("promote", "finding.yaml", "--id", "static-one", *mended)
    assert ended.code == 2
    assert "passes it at level kubelet: there is no failure to keep" in ended.err
    assert not OWN.exists()


def test_a_program_that_does_not_greet_is_2(command: Command, program: Program) -> None:
    Path("finding.yaml").write_text(FINDING)
    silent = ("--implementation", program("sys.exit(3)"))
    ended = command("promote", "finding.yaml", "--id", "static-one", *silent)
    assert ended.code == 2
    assert "the implementation did not answer hello: " in ended.err


def test_a_file_of_several_cases_is_2(command: Command) -> None:
    Path("several.yaml").write_text(FINDING + FINDING[FINDING.index("- id") :])
    ended = command("promote", "several.yaml", "--id", "static-one")
    assert ended.code == 2
    assert "several.yaml has 2 cases; expected one: remove the others" in ended.err


# Own cases in `numaproof check`


def test_own_cases_need_ids_that_no_other_case_has(command: Command) -> None:
    taken = FINDING.replace("id: fuzz", "id: pool-begins-with-all-cpus")
    Path("mine.yaml").write_text(taken)
    ended = command("check", "--cases", "mine.yaml")
    assert ended.code == 2
    assert "mine.yaml:2: cases[0].id: there is another case pool-begins" in ended.err


def test_a_folder_without_cases_is_2(command: Command) -> None:
    Path("none").mkdir()
    ended = command("check", "--cases", "none")
    assert ended.code == 2
    assert "none: there is no .yaml file in this folder" in ended.err
