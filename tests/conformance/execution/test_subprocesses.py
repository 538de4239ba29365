"""Misbehaving programs are described exactly; `subprocesses.yaml` has them.

Each is sent the calls under `ask`; `says` has the result of each call.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from builders.tables import Table
from numaproof.conformance.execution.implementation import (
    CannotStartError,
    Crashed,
    ImplementationFailure,
    handshake,
)
from numaproof.conformance.execution.programs.process import STDERR_KEPT
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = Table(__file__, "subprocesses.yaml")
STATE = 'ok={"shared": "0", "pods": {}}'
LONG = messages.AdmitArgs({"metadata": {"uid": "x" * (1 << 20)}})
HELLO = messages.Hello(
    protocol=1,
    name="toy",
    version="1",
    language="Python",
    kubernetes=("1.35",),
    level="invariants",
    operations=("start",),
    policies=messages.Policies(),
    options=messages.Options(),
)

PRELUDE = """
import json, os, sys, time
hello = json.loads(HELLO)
def read():
    return json.loads(sys.stdin.readline())
def say(text):
    sys.stdout.write(text); sys.stdout.flush()
def answer(request, **body):
    say(json.dumps({"id": request["id"], **body}) + "\\n")
"""


Program = Callable[..., Subprocess]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Creates subprocesses that run a small Python program with `read`, `say` and `answer`."""
    made: list[Subprocess] = []

    def make(body: str, timeout: float = 20.0) -> Subprocess:
        file = tmp_path / "program.py"
        constant = f"HELLO = {codec.encode(HELLO).decode()!r}\n"
        file.write_text(constant + PRELUDE + textwrap.dedent(body))
        made.append(Subprocess([sys.executable, "-S", str(file)], timeout))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ask(program: Subprocess) -> messages.Answer:
    return program.call("state", messages.NoArgs())


@PROGRAMS
def test_a_programs_behaviour_is_reported(
    row: dict[str, Any], program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = program(row["body"], row.get("timeout", 20.0))
    PROGRAMS.check(row, [outcome(one, operation) for operation in row["ask"].split()])


def outcome(program: Subprocess, operation: str) -> object:
    """Returns the type of a call's answer, or the failure's message."""
    try:
        if operation == "check_alive":
            program.check_alive()
            return "nothing"
        if operation == "handshake":
            return type(handshake(program, "test")).__name__
        return type(
            program.call(operation, LONG if operation == "admit" else messages.NoArgs())
        ).__name__
    except ImplementationFailure as failure:
        said = {type(failure).__name__: str(failure)}
        said |= {"log": failure.stderr} if failure.stderr else {}
        return said | ({"after": "its answer"} if failure.after_answer else {})


def test_a_missing_program_is_reported() -> None:
    one = Subprocess(["/nonexistent/program"], 1.0)
    with pytest.raises(CannotStartError, match="No such file"):
        ask(one)


def test_a_healthy_program_outlives_its_answers(program: Program) -> None:
    one = program(f"""
    answer(read(), {STATE})
    sys.stderr.write("said before"); sys.stderr.flush()
    answer(read(), ok=hello)
    answer(read(), {STATE})
    """)
    one.check_alive()  # nothing is running yet
    ask(one)
    one.check_alive()
    assert one.log() == "said before"
    one.begin()
    assert one.log() == ""
    assert ask(one)


def test_the_start_and_end_of_a_huge_log_are_kept(program: Program) -> None:
    body = """
    request = read()
    sys.stderr.write("the beginning\\n")
    for _ in range(200):
        sys.stderr.write(("x" * 1023 + "\\n") * 64)
    sys.stderr.write("the end"); sys.stderr.flush()
    sys.exit(3)
    """
    one = program(body)
    with pytest.raises(Crashed) as caught:
        ask(one)
    assert len(caught.value.stderr) < 2 * STDERR_KEPT + 100
    assert caught.value.stderr.startswith("the beginning\n")
    assert re.search(r"\n\[\.\.\. 12,78\d lines left out \.\.\.\]\n", caught.value.stderr)
    assert caught.value.stderr.endswith("the end")


def test_a_program_may_exit_when_its_input_ends(program: Program, tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    body = f"""
    answer(read(), ok={{"shared": "", "pods": {{}}}})
    sys.stdin.read()
    open({str(tidied)!r}, "w").close()
    """
    one = program(body)
    ask(one)
    one.close()
    assert tidied.exists()
