"""`numaproof fuzz`, and `numaproof replay` of what it finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
Program = Callable[[str], str]

REPORT = Path("numaproof-report")


def test_the_reference_passes_and_the_seed_is_told(command: Command) -> None:
    ended = command("fuzz", "--max-examples", "5", "--seed", "11", "--json")
    assert ended.code == 0
    assert ended.json()["outcomes"] == {"pass": 5}
    first = json.loads((REPORT / "events.jsonl").read_text().splitlines()[0])
    assert first["seed"] == 11


def test_a_time_ends_the_run(command: Command) -> None:
    ended = command("fuzz", "--max-time", "0.01s", "--seed", "1")
    assert ended.code == 0
    assert "1 example (1 pass)" in ended.out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--max-time", "soon"), "'soon' is not a time such as 90s, 5m or 1h"),
        (("--max-time", "5d"), "'5d' is not a time"),
        (("--max-examples", "0"), "0 is not in the range"),
        (("--seed", "-1"), "-1 is not in the range"),
    ],
)
def test_a_wrong_budget_is_2(command: Command, args: tuple[str, ...], complaint: str) -> None:
    ended = command("fuzz", *args)
    assert ended.code == 2
    assert complaint in ended.err


def test_a_finding_is_a_case_file_that_fails_again_and_passes_once_mended(
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
