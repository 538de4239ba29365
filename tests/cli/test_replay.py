"""`numaproof replay`: case files of one's own, call by call."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Program = Callable[[str], str]

CASE = """\
cases:
- id: mine
  title: Mine
  requirements: []
  kubernetes: "%s"
  machines: {names: [vm-1-cpu]}
  steps:
  - start: {config: {cpuManagerPolicy: %s}}
"""


def test_a_persons_own_case_is_played_on_bundled_machines(command: Command) -> None:
    Path("mine.yaml").write_text(CASE % ("", "none"))
    ended = command("replay", "mine.yaml")
    assert ended.code == 0
    assert "1 case run (1 pass)" in ended.out


ADMISSION = """\
  - admit: {pod: p, containers: {app: {limits: {cpu: 1, memory: 1Gi}}}}
    expect: {refused: %s}
"""


def test_every_call_is_shown_with_its_answer_also_where_nothing_is_wrong(command: Command) -> None:
    Path("mine.yaml").write_text(CASE % ("", "none"))
    shown = command("replay", "mine.yaml").out.splitlines()
    assert shown[0].startswith("numaproof replay: ")
    at = shown.index("mine on vm-1-cpu: Mine")
    assert shown[at + 1].startswith('   1 start {"config": {"cpuManagerPolicy": "none"}')
    # It is one of those that start from the tree of their machine.
    assert shown[at + 1].endswith('"root": "$TREE"}')
    assert shown[at + 2].startswith('     {"cpus": {"all": "0"')
    assert shown[at + 3] == "   2 state {}"
    assert "  ✓ pass" in shown[at + 4 :]


def test_a_problem_is_shown_below_its_call_and_the_exit_code_is_1(command: Command) -> None:
    Path("mine.yaml").write_text(CASE % ("", "none") + ADMISSION % "TopologyAffinityError")
    ended = command("replay", "mine.yaml")
    assert ended.code == 1
    shown = ended.out.splitlines()
    (at,) = (number for number, line in enumerate(shown) if line.startswith("   3 admit "))
    assert '"containers": {"app"' in shown[at + 1]
    assert shown[at + 2].startswith("     ✗ ")
    assert any(line.startswith("  ✗ fail: ") for line in shown)
    assert "reproduce: numaproof replay mine.yaml" in ended.out


def test_pods_that_a_restart_finds_are_named_only(command: Command) -> None:
    again = "  - admit: {pod: p, containers: {app: {}}}\n  - start: {}\n"
    Path("mine.yaml").write_text(CASE % ("", "none") + again)
    shown = command("replay", "mine.yaml").out
    assert '"pods": ["uid-p"]' in shown


def test_only_the_chosen_cases_and_machines_are_played(command: Command) -> None:
    text = (CASE % ("", "none")).replace("vm-1-cpu", "'*'")
    Path("mine.yaml").write_text(text)
    args = ("--machine", "laptop-4c8t", "--machine", "vm-1-cpu", "--json")
    assert command("replay", "mine.yaml", *args).json()["outcomes"] == {"pass": 2}
    assert command("replay", "mine.yaml", "--select", "other").code == 2


def test_a_program_without_an_answer_is_shown_so(command: Command, program: Program) -> None:
    dying = program("sys.exit(3) if request.op == 'start' else answer(request)")
    Path("mine.yaml").write_text(CASE % ("", "none"))
    ended = command("replay", "mine.yaml", "--implementation", dying)
    assert ended.code == 1
    assert "     no answer\n" in ended.out
    assert "  † crash: the program ended at start with exit code 3" in ended.out


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CASE % ("1.12", "none"), "no case in mine.yaml applies to Kubernetes"),
        (CASE % ("newest", "none"), "'newest' is not a release such as '1.35'"),
        (
            CASE % ("", "none") + "  - admit: lost\n",
            "case mine, step 2: no earlier step describes the pod lost",
        ),
        (CASE % ("", '"${lost}"'), "'lost' is not known here"),
        (
            CASE.replace("title", "titel") % ("", "none"),
            "mine.yaml:3: cases[0].titel: unknown key 'titel'",
        ),
        ("cases: []", "no case in mine.yaml"),
        ("cases: [*a]", "mine.yaml:1: YAML aliases are not allowed (repeat the value)"),
        ("a: &a [1]\nb: [*a, *a]", "mine.yaml:2: YAML aliases are not allowed"),
        ("cases: [", "mine.yaml:2: not YAML"),
    ],
)
def test_a_wrong_case_file_is_2_with_its_line(command: Command, text: str, complaint: str) -> None:
    Path("mine.yaml").write_text(text)
    ended = command("replay", "mine.yaml")
    assert ended.code == 2
    assert complaint in ended.err


def test_recordings_are_played_against_what_they_were_answered(
    command: Command, program: Program
) -> None:
    kept = ("--seeds", "0:2", "--merges", "0:1", "--out", "kept.jsonl.xz", "--kubernetes", "1.35")
    assert command("record", "--implementation", program("answer(request)"), *kept).code == 0
    assert command("replay", "kept.jsonl.xz", "--kubernetes", "1.35").code == 0
    other = command("replay", "kept.jsonl.xz", "--kubernetes", "1.36")
    assert other.code == 2
    assert "was recorded on Kubernetes 1.35, not 1.36; give --kubernetes 1.35" in other.err
    assert command("replay", "kept.jsonl.xz", "--kubernetes", "1.35", "--select", "x").code == 2
    Path("torn.jsonl.xz").write_bytes(b"torn")
    assert command("replay", "torn.jsonl.xz").code == 2


def test_a_bundled_case_is_replayed_by_its_id_on_the_first_machine_it_applies_to(
    command: Command,
) -> None:
    ended = command("replay", "example-guaranteed-integer-is-exclusive")
    assert ended.code == 0
    assert "1 case run (1 pass)" in ended.out
    assert "   1 start " in ended.out


def test_a_bundled_case_is_replayed_on_the_machines_that_are_asked_for(command: Command) -> None:
    machines = ("--machine", "laptop-4c8t", "--machine", "xeon-gold-6230-2s")
    ended = command("replay", "example-guaranteed-integer-is-exclusive", *machines)
    assert "2 case runs (2 pass)" in ended.out
    assert "example-guaranteed-integer-is-exclusive on laptop-4c8t" in ended.out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("lost.yaml",), "there is no file 'lost.yaml'"),
        (("findings/lost",), "there is no file 'findings/lost'"),
        (
            ("remove-make-room",),
            "no case has the id 'remove-make-room'; did you mean 'remove-makes-room'",
        ),
        (("remove-*",), "'remove-*': give an id, not a glob"),
    ],
)
def test_what_is_neither_a_file_nor_a_case_is_2(
    command: Command, args: tuple[str, ...], complaint: str
) -> None:
    ended = command("replay", *args)
    assert ended.code == 2
    assert complaint in ended.err


def test_a_case_is_replayed_as_often_as_is_asked_for(command: Command, program: Program) -> None:
    counting = program("open('calls', 'a').write(request.op + ' ')\nanswer(request)")
    args = ("--implementation", counting, "--repeat", "3")
    ended = command("replay", "example-guaranteed-integer-is-exclusive", *args)
    assert ended.code == 0
    assert Path("calls").read_text().split().count("start") == 3


def test_a_replay_of_nothing_that_is_supported_says_so_on_standard_error(command: Command) -> None:
    steps = "  - start: {kubernetes: '1.99'}\n"
    Path("mine.yaml").write_text(CASE % ("", "none") + steps, encoding="utf-8")
    ended = command("replay", "mine.yaml")
    assert ended.code == 2
    assert ended.err == ("numaproof: nothing was tested: no case ran, or none is supported\n")


def test_what_is_wrong_with_a_recorded_case_is_said_with_its_line(command: Command) -> None:
    source = {"format": 1, "name": "kubelet", "version": "1", "language": "Go"}
    source |= {"kubernetes": "1.37", "numaproof": "0", "recorded": "2026-01-01"}
    step = {"start": {"offline": "-7"}, "expect": "anything"}
    machine = {"num_cores": 1, "num_physical_cores": 1, "num_sockets": 1, "memory_capacity": 1}
    machine |= {"topology": None}
    case = {"id": "a", "title": "A", "requirements": [], "steps": [step], "machine": machine}
    recording = {"case": case, "calls": []}
    text = "\n".join(map(json.dumps, (source, recording))).encode()
    Path("r.jsonl.xz").write_bytes(lzma.compress(text))
    ended = command("replay", "r.jsonl.xz")
    assert ended.code == 2
    assert "r.jsonl.xz, line 2: case a, step 1: " in ended.err


def test_an_argument_that_is_no_utf_8_is_shown_in_the_command_that_runs_it_again(
    command: Command,
) -> None:
    Path("mine.yaml").write_text(CASE % ("", "none"), encoding="utf-8")
    assert command("replay", "mine.yaml", "--out", "a\udcff").code == 0
    events = Path("a\udcff/events.jsonl").read_text(encoding="utf-8")
    assert r"--out $'a\\xff'" in events
