"""`numaproof record`, and `numaproof check` with the bundled recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance.differential import recordings
from numaproof.protocol.mismatch import shown

Command = Callable[..., Any]
Program = Callable[[str], str]

HONEST = "answer(request)"
FEW = ("--seeds", "0:3", "--merges", "0:30")


def test_a_recording_says_what_answered_and_when(command: Command, program: Program) -> None:
    args = ("--implementation", program(HONEST), "--kubernetes", "1.34", *FEW)
    ended = command("record", *args, "--date", "2026-01-02", "--out", "mine.jsonl.xz")
    assert ended.code == 0
    assert "mine.jsonl.xz: 5 cases" in ended.out
    source, kept = recordings.read(Path("mine.jsonl.xz"))
    assert (source.name, source.kubernetes) == ("numaproof reference", "1.34")
    assert source.recorded == "2026-01-02"
    assert [one.seed for one in kept] == [0, 1, 2, 0, 25]
    assert [one.case.id for one in kept[3:]] == ["merges-0", "merges-25"]
    assert len(kept[4].calls) == 5


def test_seeds_may_be_chosen_one_by_one(command: Command, program: Program) -> None:
    args = ("--implementation", program(HONEST), "--seeds", "5,1:3,2", "--merges", "7")
    assert command("record", *args, "--out", "mine.jsonl.xz").code == 0
    _, kept = recordings.read(Path("mine.jsonl.xz"))
    assert [one.seed for one in kept] == [5, 1, 2, 7]


def test_a_scenario_without_an_answer_is_left_out_and_reported(
    command: Command, program: Program
) -> None:
    dying = program("sys.exit(3) if request.op == 'merge' else answer(request)")
    args = ("--implementation", dying, "--seeds", "3:4", "--merges", "0:30")
    ended = command("record", *args, "--out", "mine.jsonl.xz")
    assert ended.code == 0
    assert "skipped merges 0: the program ended at merge with exit code 3" in ended.err
    assert "skipped 2 of 3 cases: the program ended at merge" in ended.err
    faulty = program(
        """
        fault = {"id": request.id, "fault": {"message": "boom", "trace": ""}}
        print(json.dumps(fault), flush=True) if request.op == "merge" else answer(request)
        """
    )
    args = ("--implementation", faulty, "--seeds", "3:4", "--merges", "0:30")
    ended = command("record", *args, "--out", "other.jsonl.xz")
    assert "skipped merges 25: merge ended in a fault: boom" in ended.err


def test_nothing_recorded_is_an_error_that_says_why(command: Command, program: Program) -> None:
    dying = program("answer(request) if request.op == 'hello' else sys.exit(3)")
    ended = command("record", "--implementation", dying, *FEW, "--out", "mine.jsonl.xz")
    assert ended.code == 2
    said = "nothing was recorded: skipped 5 of 5 cases: the program ended"
    assert said in ended.err
    assert "with exit code 3 (3)" in ended.err
    assert not Path("mine.jsonl.xz").exists()


def test_skipped_scenarios_are_counted_with_their_reasons(
    command: Command, program: Program
) -> None:
    simple = program(UNSUPPORTED_MERGES)
    args = ("--implementation", simple, "--merges", "0:30", "--out", "mine.jsonl.xz")
    ended = command("record", *args, "--seeds", "3:4")
    assert ended.code == 0
    assert "skipped 2 of 3 cases: it is not supported (2)" in ended.err
    assert "mine.jsonl.xz: 1 case" in ended.out


UNSUPPORTED_MERGES = """
unsupported = {"id": request.id, "unsupported": {"what": "merges"}}
print(json.dumps(unsupported), flush=True) if request.op == "merge" else answer(request)
"""


def test_a_recording_never_replaces_a_file(command: Command, program: Program) -> None:
    Path("mine.jsonl.xz").write_text("mine")
    ended = command("record", "--implementation", program(HONEST), "--out", "mine.jsonl.xz")
    assert ended.code == 2
    assert "mine.jsonl.xz already exists; remove it or choose another name" in ended.err
    assert Path("mine.jsonl.xz").read_text() == "mine"


def test_recordings_are_an_area_of_the_check(command: Command) -> None:
    ended = command("check", "--select", "recorded-scenario-1?", "--json")
    assert ended.code == 0
    assert ended.json()["areas"] == {"recordings": {"pass": 10}}


def test_a_program_that_answers_otherwise_than_the_kubelet_fails_them(
    command: Command, program: Program, finished: Callable[[Path], list[Any]]
) -> None:
    other = program(
        """
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "merge":
            plain["ok"]["admit"] = not plain["ok"]["admit"]
        print(json.dumps(plain), flush=True)
        """
    )
    args = ("--implementation", other, "--select", "recorded-merges-0")
    ended = command("check", *args)
    assert ended.code == 1
    (run,) = finished(Path("numaproof-report/check"))
    assert run.outcome == "fail"
    answer, recorded = run.steps[-1].answer["admit"], run.steps[-1].expected["admit"]
    assert answer is not recorded
    sides = f"expected: {shown(recorded)}\ngot: {shown(answer)}"
    assert run.message == f"merge: admit differs\n{sides}"
    assert run.steps[-1].problems == (f"admit differs\n{sides}",)


@pytest.mark.parametrize("left_out", [("--as", "documented"), ("--machine", "laptop-4c8t")])
def test_recordings_are_left_out_where_they_do_not_apply(
    command: Command, left_out: tuple[str, ...]
) -> None:
    ended = command("check", "--select", "recorded-*", *left_out)
    assert ended.code == 2
    assert "none of the selected cases applies" in ended.err
