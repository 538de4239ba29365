"""A crash is attributed to the case and the call that caused it, with the log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from builders.targets import target_of
from numaproof.conformance.differential.by_release import ByRelease
from numaproof.conformance.execution.subprocesses import Subprocess

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import Run, RunResult, Target

Play = Callable[..., "tuple[RunResult, Run]"]

PROGRAM = """
import os, sys
from numaproof.protocol import codec
from numaproof.reference.implementation import Reference

def log(text):
    sys.stderr.write(text); sys.stderr.flush()

reference = Reference()
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    answer = reference.call(request.op, codec.decode_args(request))
    out = codec.encode_answer(request.id, answer)
    op = request.op
    {before}
    sys.stdout.buffer.write(out); sys.stdout.flush()
    {after}
"""

STATIC = 'config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}\n'
ADMIT = STATIC + "steps:\n- admit: {pod: a, containers: {app: {limits: {cpu: 2, memory: 1Gi}}}}\n"
WRONG = ADMIT + "  expect: {containers: {app: {exclusive: 3}}}\n"


@pytest.fixture
def open_program(tmp_path: Path) -> Iterator[Callable[..., Target]]:
    """Creates targets: the reference as a program with a side effect."""
    made: list[Subprocess] = []

    def make(after: str = "pass", before: str = "pass", *, by_release: bool = False) -> Target:
        file = tmp_path / f"program-{len(made)}.py"
        file.write_text(PROGRAM.format(after=after, before=before))
        made.append(Subprocess([sys.executable, str(file)], 60.0))
        return target_of(ByRelease(made, "tests") if by_release else made[-1])

    yield make
    for one in made:
        one.close()


LAST = "if op == 'state' and b'app' in out: log('out of luck'); os._exit(7)"


@pytest.mark.parametrize("by_release", [False, True])
@pytest.mark.parametrize(
    ("after", "before", "message", "calls"),
    [
        (LAST, "pass", "after its answer to state with exit code 7", "start state admit state"),
        (
            "if op == 'admit': os.abort()",
            "pass",
            "after its answer to admit with signal SIGABRT",
            "start state admit",
        ),
        ("pass", "if op == 'admit': os._exit(3)", "at admit with exit code 3", "start state admit"),
    ],
)
def test_a_death_is_attributed_to_the_call_before_it(
    play: Play,
    open_program: Callable[..., Target],
    after: str,
    before: str,
    message: str,
    calls: str,
    *,
    by_release: bool,
) -> None:
    target = open_program(after, before, by_release=by_release)
    result, run = play(target, ADMIT)
    assert (result.outcome, result.message) == ("crash", f"the program ended {message}")
    assert result.stderr == ("out of luck" if after == LAST else "")
    steps = run.steps()
    assert " ".join(step.operation for step in steps) == calls
    assert (steps[-1].answer is None) == message.startswith("at")
    assert run.signature(result).startswith(f"crash at {steps[-1].operation}: ")
    # The next case is not affected.
    assert play(target, STATIC + "steps:\n- start: {}\n")[0].good


def test_a_wrong_answer_is_shown_with_the_cases_log(
    play: Play, open_program: Callable[..., Target]
) -> None:
    target = open_program(before="log(op + ' ')")
    for _ in range(2):  # the log of an earlier case is not included
        result, _ = play(target, WRONG)
        assert (result.outcome, result.stderr) == ("fail", "start state admit state hello ")
    passed, _ = play(target, ADMIT)
    assert (passed.outcome, passed.stderr) == ("pass", "")


def test_a_death_does_not_hide_an_earlier_wrong_answer(
    play: Play, open_program: Callable[..., Target]
) -> None:
    result, _ = play(open_program(LAST), WRONG)
    assert (result.outcome, result.stderr) == ("fail", "out of luck")
