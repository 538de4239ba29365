"""`numaproof diff`: two programs side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
Program = Callable[[str], str]

REPORT = Path("numaproof-report/diff")
FEWER = """
reply = reference.call(request.op, codec.decode_args(request))
plain = json.loads(codec.encode_answer(request.id, reply))
for one in plain.get("ok", {}).get("containers", {}).values():
    if one["exclusive"]:
        one["cpus"] = one["exclusive"].split("-")[0].split(",")[0]
print(json.dumps(plain), flush=True)
"""


def test_a_difference_is_shrunk_shown_and_replayable(command: Command, program: Program) -> None:
    fewer = program(FEWER)
    ended = command("diff", "--right", fewer, "--seeds", "20:200", "--tries", "3")
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


def of_release(program: Program, name: str, *releases: str) -> str:
    """A program that claims only some releases."""
    return program(
        f"""
        reply = reference.call(request.op, codec.decode_args(request))
        plain = json.loads(codec.encode_answer(request.id, reply))
        if request.op == "hello":
            plain["ok"] |= {{"name": {name!r}, "version": "1", "kubernetes": {list(releases)}}}
        print(json.dumps(plain), flush=True)
        """
    )


def test_sides_without_a_common_release_are_both_named(command: Command, program: Program) -> None:
    right = of_release(program, "right", "1.37")
    Path("left.py").write_text((Path("..") / "program.py").read_text().replace("'right'", "'left'"))
    text = Path("left.py").read_text().replace("1.37", "1.36")
    Path("left.py").write_text(text)
    left = right.replace(right.split()[-1], "left.py")
    ended = command("diff", "--left", left, "--right", right, "--seeds", "0:1")
    assert ended.code == 2
    assert ended.err.splitlines()[-1] == (
        "Error: no common release: left 1 claims 1.36 and right 1 claims 1.37;"
        " compare programs of the same release"
    )


def test_the_newest_common_release_is_compared(command: Command, program: Program) -> None:
    right = of_release(program, "right", "1.36", "1.37")
    text = (Path("..") / "program.py").read_text().replace("['1.36', '1.37']", "['1.35', '1.36']")
    Path("left.py").write_text(text)
    left = right.replace(right.split()[-1], "left.py")
    ended = command("diff", "--left", left, "--right", right, "--seeds", "0:1")
    assert (ended.code, ended.err) == (0, "")
    assert ", Kubernetes 1.36, level kubelet, 1 example" in ended.out
