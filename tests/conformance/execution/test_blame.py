"""A program that breaks is blamed in the case and at the call in which it broke, log included."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from builders.targets import target_of
from numaproof.conformance.differential.by_release import ByRelease
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.fuzzing.fuzz import fuzz
from numaproof.conformance.fuzzing.fuzz_options import Budget, FuzzOptions
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import events

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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Target]]:
    """Makes targets of the reference as a program that does something wrong by the way."""
    made: list[Subprocess] = []

    def make(after: str = "pass", before: str = "pass", *, wrapped: bool = False) -> Target:
        file = tmp_path / f"program-{len(made)}.py"
        file.write_text(PROGRAM.format(after=after, before=before))
        made.append(Subprocess([sys.executable, str(file)], 60.0))
        return target_of(ByRelease(made, "tests") if wrapped else made[-1])

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_death_after_the_last_answer_of_a_case_is_blamed_on_that_case(
    play: Play, opened: Callable[..., Target], *, wrapped: bool
) -> None:
    # Each life answers hello, start, state, admit and state.
    dying = "if op == 'state' and b'app' in out: log('out of luck'); os._exit(7)"
    target = opened(dying, wrapped=wrapped)
    result, run = play(target, ADMIT)
    assert result.outcome == "crash"
    assert result.message == "the program ended after its answer to state with exit code 7"
    assert result.stderr == "out of luck"
    last = run.steps()[-1]
    assert (last.operation, last.answer is None) == ("state", False)
    assert run.signature(result) == "crash at state: exit code 7"
    # The next case is none the worse for it.
    assert play(target, STATIC + "steps:\n- start: {}\n")[0].good


def test_a_death_between_two_calls_is_blamed_on_the_first(
    play: Play, opened: Callable[..., Target]
) -> None:
    result, run = play(opened("if op == 'admit': os.abort()"), ADMIT)
    assert result.message == "the program ended after its answer to admit with signal SIGABRT"
    assert [step.operation for step in run.steps()] == ["start", "state", "admit"]
    assert run.steps()[-1].answer is not None


def test_a_crash_without_any_answer_stays_with_its_call(
    play: Play, opened: Callable[..., Target]
) -> None:
    result, run = play(opened(before="if op == 'admit': os._exit(3)"), ADMIT)
    assert result.message == "the program ended at admit with exit code 3"
    assert run.steps()[-1].answer is None


def test_another_line_after_the_last_answer_is_blamed_on_that_case(
    play: Play, opened: Callable[..., Target]
) -> None:
    chatter = "if op == 'admit': sys.stdout.write('done\\n'); sys.stdout.flush()"
    result, run = play(opened(chatter), ADMIT)
    assert result.outcome == "protocol error"
    # Whether the harness had asked again by then is up to the machine; it quotes the line anyway.
    assert result.message.endswith(("no request asked for: done", "the line was done"))
    assert run.steps()[-1].operation in {"admit", "state"}


def test_what_a_program_logs_in_a_case_stands_beside_a_wrong_answer(
    play: Play, opened: Callable[..., Target]
) -> None:
    target = opened(before="log(op + ' ')")
    wrong = ADMIT + "  expect: {containers: {app: {exclusive: 3}}}\n"
    for _ in range(2):  # what was logged in an earlier case is not of this one
        result, _ = play(target, wrong)
        assert (result.outcome, result.stderr) == ("fail", "start state admit state hello ")
    passed, _ = play(target, ADMIT)
    assert (passed.outcome, passed.stderr) == ("pass", "")


def test_a_death_after_a_wrong_answer_leaves_the_wrong_answer_to_be_seen(
    play: Play, opened: Callable[..., Target]
) -> None:
    target = opened("if op == 'state' and b'app' in out: log('bye'); os._exit(7)")
    result, _ = play(target, ADMIT + "  expect: {containers: {app: {exclusive: 3}}}\n")
    assert (result.outcome, result.stderr) == ("fail", "bye")
    assert play(target, STATIC + "steps:\n- start: {}\n")[0].good


def test_fuzzing_says_crash_of_a_program_that_dies_after_its_answer(
    opened: Callable[..., Target], tmp_path: Path
) -> None:
    target = opened("if op == 'admit': os._exit(9)")
    harness_run = HarnessRun(target, load_registry(), "numaproof fuzz", "0.1")
    stream = fuzz(harness_run, Budget(20, None), 1, tmp_path / "found", FuzzOptions(replay_every=1))
    (found,) = (one for one in stream if isinstance(one, events.DivergenceFound))
    assert found.outcome == "crash"
    assert found.signature == "crash at admit: exit code 9"
