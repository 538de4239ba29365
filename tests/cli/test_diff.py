"""`numaproof diff`: two programs side by side."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Program = Callable[[str], str]

REPORT = Path("numaproof-report/diff")

HONEST = "answer(request)"
FEWER = """
reply = reference.call(request.op, codec.decode_args(request))
plain = json.loads(codec.encode_answer(request.id, reply))
for one in plain.get("ok", {}).get("containers", {}).values():
    if one["exclusive"]:
        one["cpus"] = one["exclusive"].split("-")[0].split(",")[0]
print(json.dumps(plain), flush=True)
"""
CASE = """cases:
  - id: mine
    title: One pod
    requirements: [r]
    kubernetes: "%s"
    machines: {names: [laptop-4c8t, vm-1-cpu]}
    config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
    steps:
      - %s
"""
ADMIT = "admit: {pod: p, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}"


def test_two_that_agree_are_0(command: Command, program: Program) -> None:
    ended = command("diff", "--right", program(HONEST), "--seeds", "0:5")
    assert ended.code == 0
    assert "numaproof diff: numaproof reference" in ended.out
    assert "Passed: 5 examples (5 pass)" in ended.out


def test_a_difference_is_shrunk_shown_on_both_sides_and_replays(
    command: Command, program: Program
) -> None:
    fewer = program(FEWER)
    ended = command("diff", "--right", fewer, "--seeds", "0:200", "--tries", "3")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert any(line.split() == ["expected", "got"] for line in lines)
    assert sum(line.count("Machine · ") for line in lines) == 2
    assert any(line.startswith("      expected ") for line in lines)
    assert any(line.startswith("      got      ") for line in lines)
    (place,) = (line for line in lines if line.startswith("    ") and line.endswith(" differs"))
    assert place.split()[0] not in [line.strip() for line in lines]
    assert not any(": expected " in line for line in lines)
    (file,) = (REPORT / "findings").iterdir()
    assert len(file.read_text().splitlines()) < 60
    assert f"reproduce: numaproof diff {file} --right " in ended.out
    kept = Path("kept.yaml")
    kept.write_text(file.read_text())
    assert command("diff", kept, "--right", fewer, "--tries", "1").code == 1
    again = ("--implementation", fewer, "--out", "again")
    assert command("replay", kept, *again).code == 1
    assert command("replay", kept, "--out", "healthy").code == 0


@pytest.mark.slow
def test_keep_going_finds_more_and_json_lists_each(command: Command, program: Program) -> None:
    args = ("--seeds", "0:16", "--tries", "1", "--keep-going", "--json")
    ended = command("diff", "--right", program(FEWER), *args)
    assert ended.code == 1
    told = ended.json()
    assert told["outcomes"]["fail"] == len(told["divergences"]) > 1
    assert sum(told["outcomes"].values()) == 16
    assert told["by_chance"] == []
    assert {one["title"].split(":")[0] for one in told["divergences"]} <= {
        f"seed {seed}" for seed in range(16)
    }


def test_answers_by_chance_are_listed_and_fail_nothing(command: Command, program: Program) -> None:
    chancy = program(
        """
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        for one in plain.get("ok", {}).get("containers", {}).values():
            admissions += 1
            one["cpus"] = str(admissions)
        print(json.dumps(plain), flush=True)
        """
    )
    Path("mine.yaml").write_text(CASE % ("", ADMIT))
    ended = command("diff", "mine.yaml", "--right", chancy, "--machine", "laptop-4c8t")
    assert ended.code == 0
    said = "answer differs from run to run: mine on laptop-4c8t, call 2: admit:"
    assert said in ended.out
    told = command("diff", "mine.yaml", "--right", chancy, "--machine", "laptop-4c8t", "--json")
    (one,) = told.json()["by_chance"]
    assert (one["scenario"], one["call"], one["operation"]) == ("mine on laptop-4c8t", 2, "admit")


ONE_RELEASE = """
args = codec.decode_args(request)
reply = reference.call(request.op, args)
plain = json.loads(codec.encode_answer(request.id, reply))
if request.op == "hello":
    plain["ok"]["kubernetes"] = ["%s"]
elif request.op == "start":
    assert args.kubernetes == "%s"
print(json.dumps(plain), flush=True)
"""


def test_an_upgrade_is_played_by_the_programs_of_both_releases(
    command: Command, tmp_path: Path, program: Program
) -> None:
    sides: list[str] = []
    for release in ("1.35", "1.36"):
        made = program(ONE_RELEASE % (release, release))
        file = tmp_path / f"kubelet-{release}.py"
        Path(shlex.split(made)[1]).rename(file)
        sides += ["--right", shlex.join([sys.executable, str(file)])]
    up = ("--from", "1.35", "--seeds", "0:1", "--json")
    ended = command("diff", "--kind", "upgrade", *sides, *up)
    assert ended.code == 0
    assert ended.json()["outcomes"] == {"pass": 2}
    none = ("--from", "1.34", "--seeds", "0:2")
    ended = command("diff", "--kind", "upgrade", *sides, *none)
    assert ended.code == 2
    assert "both sides claim 1.35, 1.36: no upgrade is left" in ended.err


def test_a_difference_after_an_upgrade_replays(command: Command, program: Program) -> None:
    lying = program(
        """
        args = codec.decode_args(request)
        reply = reference.call(request.op, args)
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "start" and args.kubernetes == "1.33":
            plain["ok"] = {"cpus": {"all": "0", "allocatable": ""}, "memory": []}
            plain.pop("refused", None)
        print(json.dumps(plain), flush=True)
        """
    )
    args = ("--kind", "upgrade", "--from", "1.34", "--to", "1.33", "--seeds", "0:1")
    ended = command("diff", "--right", lying, *args, "--tries", "1")
    assert ended.code == 1
    assert "upgrade 0 from 1.34 to 1.33: start: " in ended.out
    (file,) = (REPORT / "findings").iterdir()
    assert "kubernetes: '1.33'" in file.read_text()
    kept = Path("kept.yaml")
    kept.write_text(file.read_text())
    assert command("diff", kept, "--right", lying, "--tries", "1").code == 1
    assert command("replay", kept, "--out", "healthy").code == 0


def test_releases_to_upgrade_between_need_the_kind(command: Command, program: Program) -> None:
    ended = command("diff", "--right", program(HONEST), "--from", "1.34", "--seeds", "0:1")
    assert ended.code == 2
    assert "--from and --to need --kind upgrade" in ended.err


PANIC = """
import re
if request.op == "admit" and re.search(b'"hugepages-', line) and b'"resources":{"limits"' in line:
    trace = "panic(1)\\nmemorymanager.isAffinitySatisfyRequest(0x0)\\n"
    broken = {"message": "invalid memory address or nil pointer dereference", "trace": trace}
    print(json.dumps({"id": request.id, "fault": broken}), flush=True)
else:
    answer(request)
"""


def test_a_panic_that_is_a_named_defect_is_reported_and_fails_nothing(
    command: Command, program: Program
) -> None:
    panics = ("--right", program(PANIC), "--seeds", "4100:4103")
    ended = command("diff", *panics, "--kubernetes", "1.33")
    assert ended.code == 0
    assert "expected failure hugepages-without-memory-panic: 1" in ended.out
    assert "Passed: 3 examples (2 pass, 1 expected failure)" in ended.out
    told = command("diff", *panics, "--kubernetes", "1.33", "--json").json()
    (met,) = told["expected_failures"]
    assert (met["case"], met["defect"]) == ("seed 4101", "hugepages-without-memory-panic")
    assert met["message"].startswith("admit: the outcome differs\nexpected: ")
    assert met["message"].endswith("\ngot: a fault")


def test_the_same_panic_of_a_release_without_the_defect_fails(
    command: Command, program: Program
) -> None:
    panics = ("--right", program(PANIC), "--seeds", "4101", "--kubernetes", "1.34")
    ended = command("diff", *panics, "--json")
    assert ended.code == 1
    assert ended.json()["outcomes"] == {"fault": 1}


def test_cases_are_played_on_their_machines_without_what_they_expect(
    command: Command, program: Program
) -> None:
    Path("mine.yaml").write_text(CASE % ("", ADMIT + "\n        expect: {refused: x}"))
    assert command("diff", "mine.yaml", "--right", program(HONEST)).code == 0
    ended = command("diff", "mine.yaml", "--right", program(FEWER), "--tries", "1", "--json")
    (found,) = ended.json()["divergences"]
    assert found["title"].startswith("mine on laptop-4c8t: admit: ")


def test_a_machine_that_is_discovered_stays_the_one_that_the_case_names(
    command: Command, program: Program
) -> None:
    Path("mine.yaml").write_text(CASE % ("", "start: {tree: true}\n      - " + ADMIT))
    ended = command("diff", "mine.yaml", "--right", program(FEWER), "--tries", "1", "--json")
    text = Path(ended.json()["divergences"][0]["file"]).read_text()
    assert "names: [laptop-4c8t]" in text
    assert "topology:" not in text


def test_made_up_trees_are_discovered_by_both(command: Command, program: Program) -> None:
    seeds = ("--kind", "tree", "--seeds", "0:6", "--keep-going")
    ended = command("diff", "--right", program(HONEST), *seeds)
    assert ended.code == 0
    assert "Passed: 6 examples (6 pass)" in ended.out
    other = program(
        """
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "discover" and "ok" in plain:
            plain["ok"]["num_sockets"] += 1
        print(json.dumps(plain), flush=True)
        """
    )
    found = command("diff", "--right", other, *seeds, "--json").json()["divergences"]
    assert all(one["title"].endswith(": discover: num_sockets differs") for one in found)
    assert found[0]["title"].startswith("tree ")


def test_trees_are_discovered_by_both(command: Command, program: Program) -> None:
    assert command("profile", "tree", "laptop-4c8t", "--to", "tree.tar.xz").code == 0
    assert command("diff", "tree.tar.xz", "--right", program(HONEST)).code == 0
    other = program(
        """
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "discover":
            plain["ok"]["topology"][0]["memory"] += 1
        print(json.dumps(plain), flush=True)
        """
    )
    ended = command("diff", "tree.tar.xz", "--right", other, "--json")
    (found,) = ended.json()["divergences"]
    title = "discovery of tree.tar.xz: discover: nodes.0.memory differs"
    assert found["title"] == title
    assert found["message"].startswith(f"{title}\nexpected: ")


def test_a_program_that_dies_or_hangs_is_an_outcome_of_its_own(
    command: Command, program: Program
) -> None:
    Path("mine.yaml").write_text(CASE % ("", ADMIT))
    dying = program("sys.exit(3) if request.op == 'admit' else answer(request)")
    args = ("mine.yaml", "--machine", "laptop-4c8t", "--json")
    assert command("diff", *args, "--right", dying).json()["outcomes"] == {"crash": 1}
    hanging = program("time.sleep(60) if request.op == 'admit' else answer(request)")
    ended = command("diff", *args, "--right", hanging, "--timeout", "3s")
    assert ended.json()["outcomes"] == {"time-out": 1}


def test_the_left_side_may_be_a_program_and_its_release_counts(
    command: Command, program: Program
) -> None:
    left = shlex.join([sys.executable, "-m", "numaproof", "reference"])
    args = ("--right", program(HONEST), "--kubernetes", "1.34", "--level", "placement")
    ended = command("diff", "--left", left, *args, "--seeds", "3")
    assert ended.code == 0
    assert "Kubernetes 1.34, level placement, 1 example" in ended.out


def test_examples_come_from_one_seed_which_is_printed(command: Command, program: Program) -> None:
    honest = program(HONEST)
    assert command("diff", "--right", honest, "--examples", "2").code == 0
    first = json.loads((REPORT / "events.jsonl").read_text().splitlines()[0])
    assert first["total"] == 2
    seed = shlex.split(first["command"])[-1]
    assert shlex.split(first["command"])[-2] == "--seed"
    assert command("diff", "--right", honest, "--examples", "2", "--seed", seed).code == 0


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--seeds", "5:5"), "'5:5' contains no seeds"),
        (("--seeds", "a:b"), "'a:b' is not a range of seeds such as 0:1000"),
        (("--seeds", "1:2", "--seed", "3"), "give only one of FILES, --seeds, or --examples"),
        (("--level", "invariants"), "'invariants' is not one of"),
        (("lost.yaml",), "'lost.yaml' does not exist"),
    ],
)
def test_a_wrong_command_is_2(command: Command, args: tuple[str, ...], complaint: str) -> None:
    ended = command("diff", "--right", "true", *args)
    assert ended.code == 2
    assert complaint in ended.err


def test_no_case_that_applies_is_2(command: Command, program: Program) -> None:
    Path("mine.yaml").write_text(CASE % ("1.20", ADMIT))
    ended = command("diff", "mine.yaml", "--right", program(HONEST))
    assert ended.code == 2
    assert "none of these cases applies to this release on this machine" in ended.err


def test_a_side_that_compares_nothing_is_2(command: Command, program: Program) -> None:
    modest = program(
        """
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "hello":
            plain["ok"]["level"] = "invariants"
        print(json.dumps(plain), flush=True)
        """
    )
    ended = command("diff", "--right", modest, "--seeds", "1")
    assert ended.code == 2
    assert "one side claims only level invariants" in ended.err


DOCUMENTED = """
documented = globals().setdefault("documented", Reference(documented=True))
reply = documented.call(request.op, codec.decode_args(request))
plain = json.loads(codec.encode_answer(request.id, reply))
if request.op == "hello":
    plain["ok"]["level"] = "placement"
print(json.dumps(plain), flush=True)
"""
REUSES = (
    "admit: {pod: p, init: {i: {limits: {cpu: 1, memory: 64Mi}}},"
    " containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}"
)


@pytest.mark.parametrize(
    ("side", "code"),
    [((), 0), (("--as", "either"), 0), (("--as", "documented"), 0), (("--as", "kubelet"), 1)],
)
def test_the_reference_on_the_left_is_on_the_side_that_is_asked_for(
    command: Command, program: Program, side: tuple[str, ...], code: int
) -> None:
    Path("mine.yaml").write_text(CASE % (">= 1.31", REUSES))
    args = ("diff", "--right", program(DOCUMENTED), "--machine", "laptop-4c8t", *side, "mine.yaml")
    assert command(*args).code == code


def test_a_program_on_the_left_takes_no_side(command: Command, program: Program) -> None:
    honest = program(HONEST)
    ended = command("diff", "--left", honest, "--right", honest, "--as", "either")
    assert ended.code == 2
    assert "--as needs the reference on the left: remove --left" in ended.err
