"""`numaproof fuzz`, and `numaproof replay` of what it finds."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
Program = Callable[[str], str]

REPORT = Path("numaproof-report/fuzz")


def test_the_reference_passes_and_the_seed_is_printed(command: Command) -> None:
    ended = command("fuzz", "--max-examples", "5", "--seed", "11", "--json")
    assert ended.code == 0
    assert ended.json()["outcomes"] == {"pass": 5}
    first = json.loads((REPORT / "events.jsonl").read_text().splitlines()[0])
    assert first["seed"] == 11


def timeless(folder: Path) -> list[dict[str, Any]]:
    """The events of a run without their times."""
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    return [{**json.loads(line), "at": None} for line in lines]


def test_two_runs_of_the_profile_ci_report_the_same_but_for_times(command: Command) -> None:
    reports = []
    for _ in range(2):
        ended = command("fuzz", "--max-examples", "30")
        assert ended.code == 0
        reports.append((timeless(REPORT), (REPORT / "report.md").read_text().splitlines()[3:9]))
        REPORT.rename(f"run-{len(reports)}")
    assert reports[0] == reports[1]
    events = reports[0][0]
    assert events[0]["seed"] == 0
    assert events[0]["command"] == "numaproof fuzz --max-examples 30 --seed 0"
    assert [event["event"] for event in events][1:] == ["reached", "campaign ended"]
    assert not Path(".numaproof").exists()


def test_the_profile_explore_takes_a_new_seed_and_keeps_a_database(command: Command) -> None:
    seeds = set()
    for _ in range(2):
        assert command("fuzz", "--profile", "explore", "--max-examples", "2").code == 0
        first = timeless(REPORT)[0]
        seeds.add(first["seed"])
        assert first["command"].endswith(f"--seed {first['seed']}")
    assert len(seeds) == 2
    assert Path(".numaproof/examples").is_dir()


def test_a_run_reports_what_it_reached(command: Command) -> None:
    ended = command("fuzz", "--max-examples", "10")
    assert "Covered in " in ended.out
    assert "\n  answers" in ended.out
    told = command("fuzz", "--max-examples", "10", "--json").json()["reached"]
    assert told["examples"] >= 10
    assert told["counts"]["actions"]["admit"] >= told["counts"]["examples with an action"]["admit"]
    assert set(told["highest"]) == {
        "CPUs that pods hold, times their share of the node",
        "pods removed times pods that stay",
        "pods offered times providers times nodes",
    }
    for report in ("report.md", "report.html"):
        assert "policies" in (REPORT / report).read_text()


def test_a_time_ends_the_run(command: Command) -> None:
    ended = command("fuzz", "--max-time", "0.01s", "--seed", "1")
    assert ended.code == 0
    assert "1 example (1 pass)" in ended.out


def test_a_finding_is_a_case_file_that_fails_again_and_passes_once_fixed(
    command: Command, program: Program
) -> None:
    losing = program(
        """
        if request.op == "state":
            state = codec.to_plain(reference.call("state", messages.NoArgs()))
            if any(one["exclusive"] for pod in state["pods"].values() for one in pod.values()):
                state["shared"] = ""
            print(json.dumps({"id": request.id, "ok": state}), flush=True)
        else:
            answer(request)
        """
    )
    args = ("--implementation", losing)
    ended = command("fuzz", "--max-examples", "60", "--seed", "1", *args, "--json")
    assert ended.code == 1
    (found,) = ended.json()["divergences"]
    assert found["outcome"] == "fail"
    file = Path(found["file"])
    assert file.parent == REPORT / "findings"
    assert len(file.read_text().splitlines()) < 50
    kept = Path("kept.yaml")
    kept.write_text(file.read_text())
    assert command("replay", kept, *args, "--out", "again").code == 1
    assert command("replay", kept, "--out", "healthy").code == 0


REFUSING = """
import json, os, sys
stage = ("config", "cpu")[len(os.listdir("lives")) % 2]
open(f"lives/{os.getpid()}", "w").close()
for line in sys.stdin:
    request = json.loads(line)
    answer = {"refused": {"stage": stage, "message": "no"}}
    if request["op"] == "hello":
        answer = {"ok": {"protocol": 1, "name": "no", "version": "1", "language": "Python",
                         "kubernetes": ["1.35"], "level": "invariants", "operations": ["start"],
                         "policies": {}, "options": {}}}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
"""
"""Refuses every start, and says another stage in every second process."""


def refusing() -> tuple[str, str]:
    """Options that name such a program, here."""
    Path("lives").mkdir()
    Path("refusing.py").write_text(REFUSING)
    return "--implementation", shlex.join([sys.executable, "-S", "refusing.py"])


def test_other_answers_in_another_process_have_an_outcome_of_their_own(
    command: Command,
) -> None:
    ended = command("fuzz", "--max-examples", "10", "--replay-every", "4", *refusing(), "--json")
    assert ended.code == 1
    told = ended.json()
    assert told["outcomes"].keys() == {"pass", "nondeterministic"}
    (found,) = told["divergences"]
    assert found["outcome"] == "nondeterministic"
    assert "start: the outcome differs\nexpected: refused at stage c" in found["message"]
    assert Path(found["file"]).is_file()
    text = (REPORT / "report.md").read_text()
    assert "expected" in text
    assert "got" in text
    assert 'type="nondeterministic"' in (REPORT / "junit.xml").read_text()


def test_other_answers_in_another_process_may_be_known(command: Command) -> None:
    stages = ("stage config", "stage cpu")
    causes = [
        f"nondeterministic at start: refused at {one} against refused at {other}"
        for one, other in (stages, stages[::-1])
    ]
    entries = [{"case": "scenario", "signature": one, "reason": "finding: x"} for one in causes]
    Path("known.yaml").write_text(json.dumps({"known_failures": entries}))
    known = ("--known-failures", "known.yaml", "--replay-every", "4")
    ended = command("fuzz", "--max-examples", "10", *known, *refusing(), "--json")
    assert ended.code == 0
    told = ended.json()
    assert told["divergences"] == []
    one, *_ = told["known_failures"]
    assert one["signature"] in causes
    assert one["reproduce"].startswith(f"numaproof replay {one['file']} --repeat 10 ")


def test_nothing_is_played_again_where_that_is_not_wanted(command: Command) -> None:
    assert command("fuzz", "--max-examples", "10", "--replay-every", "0", *refusing()).code == 0
    assert len(list(Path("lives").iterdir())) == 1


TWO_BUGS = """
import json, sys
HELLO = {"protocol": 1, "name": "two", "version": "1", "language": "Python",
         "kubernetes": ["1.35"], "level": "invariants", "operations": ["start"],
         "policies": {"cpu": ["none", "static"]}, "options": {}}
for line in sys.stdin:
    request = json.loads(line)
    answer = {"ok": HELLO}
    if request["op"] == "start":
        policy = request["args"]["config"].get("cpuManagerPolicy", "none")
        answer = {"refused": {"stage": "cpu", "message": "no"}}
        if policy in ("none", "static"):
            answer = {"fault": {"message": f"the policy {policy} broke"}}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
"""
"""Breaks at every start, by one of two causes."""


def with_two_bugs() -> tuple[str, ...]:
    """Options that name such a program, here."""
    Path("two_bugs.py").write_text(TWO_BUGS)
    program = shlex.join([sys.executable, "-S", "two_bugs.py"])
    return "--implementation", program, "--max-examples", "30", "--seed", "1"


def test_it_goes_on_after_a_finding_and_reports_each_cause_once(command: Command) -> None:
    args = (*with_two_bugs(), "--json")
    assert len(command("fuzz", *args).json()["divergences"]) == 1
    ended = command("fuzz", *args, "--keep-going")
    assert ended.code == 1
    told = ended.json()
    causes = [event["signature"] for event in timeless(REPORT) if "signature" in event]
    assert sorted(causes) == [
        "fault at start: the policy none broke",
        "fault at start: the policy static broke",
    ]
    assert len(told["divergences"]) == 2
    assert sum(told["outcomes"].values()) == 30
    assert told["outcomes"]["fault"] > 2
    assert len(list((REPORT / "findings").iterdir())) == 2


def test_known_failures_are_shown_with_their_reasons_replayed_and_promoted(
    command: Command,
) -> None:
    entries = [
        {"case": "scenario", "signature": f"fault at start: the policy {one} broke", "reason": why}
        for one, why in (("none", "crash: none"), ("static", "own rules: no CPUs"))
    ]
    Path("known.yaml").write_text(json.dumps({"known_failures": entries}))
    args = (*with_two_bugs(), "--known-failures", "known.yaml")
    ended = command("fuzz", *args)
    assert ended.code == 0
    assert "FAULT" not in ended.out
    told = ended.out[ended.out.index("≈") :].splitlines()
    assert told[:2] == [
        "≈ known failure fault at start: the policy none broke",
        "  crash: none",
    ]
    assert told[2].startswith("  case file: numaproof-report/fuzz/findings/fuzz-")
    assert "Passed: 30 examples (" in ended.out

    files = sorted((REPORT / "findings").iterdir())
    board = command("board", REPORT, "--out", "site", "--json").json()
    assert board["implementations"][0]["findings"] == {"crash": 1, "own rules": 1}
    page = Path("site/findings.html").read_text()
    assert "cpuManagerPolicy: static" in page
    assert page.count("numaproof replay cases/two-") == 2

    assert len(files) == 2
    program = args[:2]
    for file in files:
        again = command("replay", file, *program, "--out", "again")
        assert again.code == 1
        assert "the policy" in again.out
        name = ("--id", f"start-{file.stem}", "--requirement", "CPU-STATIC-001")
        assert command("promote", file, *name, *program).code == 0


def test_findings_of_an_earlier_run_are_removed_and_other_files_stay(command: Command) -> None:
    assert command("fuzz", *with_two_bugs()).code == 1
    (stale,) = (REPORT / "findings").iterdir()
    kept = [REPORT / "findings" / "fuzz-mine.yaml", REPORT / "findings" / "notes.yaml"]
    for file in kept:
        file.write_text("mine")
    assert command("fuzz", "--max-examples", "1").code == 0
    assert not stale.exists()
    assert all(file.exists() for file in kept)


def test_findings_of_an_earlier_run_are_removed_where_the_program_does_not_answer(
    command: Command,
) -> None:
    assert command("fuzz", *with_two_bugs()).code == 1
    assert command("fuzz", "--implementation", "false").code == 1
    assert list((REPORT / "findings").iterdir()) == []
