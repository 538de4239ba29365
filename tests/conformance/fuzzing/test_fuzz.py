"""Time limits and interrupts of fuzz runs; `tests/cli/pages/fuzz.txt` shows findings."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders.fuzz_runs import found_in, fuzz_events, harness_run, losing
from builders.targets import changed_reference, target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import (
    InProcess,
    ProcessBacked,
    TimedOut,
    hello_args,
)
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.fuzzing.fuzz import fuzz
from numaproof.conformance.fuzzing.fuzz_options import Budget, FuzzOptions
from numaproof.conformance.fuzzing.interrupts import (
    Interrupts,
    OutOfTimeError,
    TimeLimit,
    with_time_limit,
)
from numaproof.conformance.fuzzing.shrinking import CUT_SHORT
from numaproof.protocol import events, messages
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def timed_run(
    findings: Path, seconds: float | None, *, keep_going: bool = False
) -> tuple[list[events.AnyEvent], int]:
    """Returns the events and the duration of a run whose calls take a second each."""
    calls = 0

    class Clock(Reference):
        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            nonlocal calls
            calls += 1
            answer = super().call(operation, args)
            return losing(answer) if isinstance(answer, messages.State) else answer

    operations = ("start", "admit", "state")
    target = target_of(InProcess(Clock), level="invariants", operations=operations)
    calls = 0
    clocked = replace(harness_run(target), clock=lambda: calls, began=0.0)
    examples = 60 if seconds is None else None
    options = FuzzOptions(replay_every=0, keep_going=keep_going)
    return list(fuzz(clocked, Budget(examples, seconds), 1, findings, options)), calls


def title(stream: list[events.AnyEvent]) -> str:
    (found,) = found_in(stream)
    return found.title


def test_shrinking_is_limited_to_part_of_the_time(
    tmp_path: Path,
) -> None:
    stream, needed = timed_run(tmp_path, None)
    assert CUT_SHORT not in title(stream)
    # The failure is found early, and most of the time is spent on shrinking it.
    for share, keep_going in ((0.4, False), (0.6, True)):
        limit = int(needed * share)
        stream, took = timed_run(tmp_path, limit, keep_going=keep_going)
        assert took <= limit
        assert title(stream).endswith(f"({CUT_SHORT})")
        assert summarize(stream).verdict == "failed"
    assert summarize(stream).tally.total > 1
    assert found_in(stream)[0].at < 0.9 * limit


def test_an_implementation_with_only_discovery_is_not_fuzzed(tmp_path: Path) -> None:
    target = target_of(InProcess(Reference), operations=("discover",))
    summary = summarize([*fuzz_events(target, tmp_path)])
    assert (summary.verdict, summary.exit_code) == ("nothing tested", 2)


def _lose_interrupt() -> None:
    """Interrupts as in a callback of the garbage collector."""


def _raise_flaky() -> None:
    raise AssertionError("an example is not repeatable")


def test_an_interrupt_during_garbage_collection_is_deferred() -> None:
    def gc_callback() -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Interrupts() as interrupts:
            gc_callback()
            assert interrupts.came
            with pytest.raises(KeyboardInterrupt):
                interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("signal_number", "becomes"),
    [
        (signal.SIGINT, _lose_interrupt),
        (signal.SIGTERM, _raise_flaky),
        (signal.SIGHUP, _lose_interrupt),
    ],
)
def test_an_interrupt_ends_the_run_even_if_it_is_swallowed(
    becomes: Callable[[], None], signal_number: signal.Signals, tmp_path: Path
) -> None:
    asked: list[messages.State] = []

    def interrupt(state: messages.State) -> messages.State:
        asked.append(state)
        if len(asked) == 1:
            try:
                signal.raise_signal(signal_number)
            except KeyboardInterrupt:
                becomes()
        return state

    target = target_of(changed_reference(state=interrupt))
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for one in before:
        signal.signal(one, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            [*fuzz_events(target, tmp_path / "findings")]
        assert [signal.getsignal(one) for one in before] == [signal.default_int_handler] * 3
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def test_an_interrupt_while_shrinking_keeps_the_failure(
    tmp_path: Path,
) -> None:
    failures = 0

    def impatient(state: messages.State) -> messages.State:
        nonlocal failures
        broken = losing(state)
        failures += broken != state
        if failures > 2:
            raise KeyboardInterrupt
        return broken

    findings = tmp_path / "findings"
    with pytest.raises(KeyboardInterrupt):
        [*fuzz_events(target_of(changed_reference(state=impatient)), findings)]
    (file,) = findings.iterdir()
    assert loading.read_file(file)


HELLO = hello_args("tests")
SILENT = (sys.executable, "-c", "import sys; sys.stdin.read()")


def test_no_call_is_made_after_the_time_limit() -> None:
    now = 0.0
    limit = TimeLimit(lambda: now, 2.0)
    reference = with_time_limit(InProcess(Reference), limit)
    assert not isinstance(reference, ProcessBacked)
    assert reference.call("hello", HELLO)
    now = 2.0
    with pytest.raises(OutOfTimeError):
        reference.call("hello", HELLO)
    limit.until = 3.0
    assert reference.call("hello", HELLO)


def test_the_runs_time_limit_is_no_timeout_of_the_program() -> None:
    program = Subprocess(SILENT, 60.0)
    silent = with_time_limit(program, TimeLimit(time.monotonic, time.monotonic() + 0.2))
    assert isinstance(silent, ProcessBacked)
    with pytest.raises(OutOfTimeError):
        silent.call("hello", HELLO)
    silent.close()
    assert silent.leftover_processes == ()


def test_a_slow_program_times_out_before_the_limit() -> None:
    silent = with_time_limit(Subprocess(SILENT, 0.2), TimeLimit(lambda: 0.0, 60.0))
    with pytest.raises(TimedOut, match="no answer to hello"):
        silent.call("hello", HELLO)
