"""Fuzzing: what it finds, how small, and that it finds the same again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from builders.fuzzed import found_in, fuzzed, harness_run, losing, replayed
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Target
from numaproof.conformance.fuzzing.fuzz import fuzz
from numaproof.conformance.fuzzing.fuzz_options import Budget, FuzzOptions
from numaproof.conformance.fuzzing.interrupts import Interrupts
from numaproof.conformance.fuzzing.shrinking import CUT_SHORT
from numaproof.protocol import events, messages
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

MakeTarget = Callable[..., Target]


class Listening(Reference):
    """The reference, with every call that it gets."""

    calls: list[tuple[str, object]]

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        if isinstance(args, messages.StartArgs):
            self.calls.append((operation, (args.config, args.machine)))
        else:
            self.calls.append((operation, args))
        return super().call(operation, args)


def run(
    target: Target, findings: Path, seed: int = 1, examples: int | None = 60, **budget: Any
) -> list[events.AnyEvent]:
    return [*fuzzed(target, findings, examples, seed, seconds=budget.get("seconds"))]


def test_the_healthy_reference_passes(reference: Target, tmp_path: Path) -> None:
    stream = run(reference, tmp_path / "findings", examples=15)
    assert [type(event).__name__ for event in stream] == [
        "RunStarted",
        "Progress",
        "Coverage",
        "RunEnded",
    ]
    assert summarize(stream).verdict == "passed"
    assert summarize(stream).tally.counts == {"pass": 15}
    assert not (tmp_path / "findings").exists()


def test_the_same_seed_makes_the_same_calls(make_target: MakeTarget, tmp_path: Path) -> None:
    def calls(seed: int) -> list[Any]:
        heard: list[tuple[str, object]] = []
        one = type("One", (Listening,), {"calls": heard})
        run(make_target(InProcess(one)), tmp_path, seed, examples=4)
        return heard

    first = calls(7)
    assert len(first) > 20
    assert calls(7) == first
    assert calls(8) != first


def test_a_fault_is_found_shrunk_and_replayed(
    make_target: MakeTarget, changed: Callable[..., Any], reference: Target, tmp_path: Path
) -> None:
    broken = make_target(InProcess(lambda: changed(state=losing)))
    stream = run(broken, tmp_path / "findings")
    (found,) = found_in(stream)
    assert found.outcome == "fail"
    assert "no-cpu-lost" in found.message or "reserved-stay-shared" in found.message
    assert found.file is not None
    assert found.reproduce.startswith(f"numaproof replay {found.file} --kubernetes 1.35")
    assert summarize(stream).verdict == "failed"

    (case,) = loading.read_file(Path(found.file))
    assert [step.verb for step in case.steps] == ["start", "admit"]
    (admission,) = (step.admit for step in case.steps if step.admit)
    assert not isinstance(admission, str)
    assert len(admission.containers) == 1
    assert case.machine is not None
    assert len(Facts(case.machine).all) <= 4
    assert case.requirements

    assert replayed(case, broken, tmp_path / "broken").outcome == "fail"
    assert replayed(case, reference, tmp_path / "reference").outcome == "pass"


@pytest.mark.slow
def test_a_finding_is_the_same_in_every_run(
    make_target: MakeTarget, changed: Callable[..., Any], tmp_path: Path
) -> None:
    target = make_target(InProcess(lambda: changed(state=losing)))
    one, two = (run(target, tmp_path / "findings") for _ in range(2))
    assert one == two
    assert len(list((tmp_path / "findings").iterdir())) == 1


def test_a_budget_of_time_ends_the_run_after_one_example_at_least(
    reference: Target, tmp_path: Path
) -> None:
    stream = run(reference, tmp_path, examples=None, seconds=0.0)
    ended = stream[-1]
    assert isinstance(ended, events.RunEnded)
    assert ended.complete
    assert ended.outcomes == {"pass": 1}


def timed(
    make_target: MakeTarget, findings: Path, seconds: float | None, *, keep_going: bool = False
) -> tuple[list[events.AnyEvent], int]:
    """The events of a run whose calls take a second each, and how long it took."""

    class Clock(Listening):
        calls: ClassVar[list[tuple[str, object]]] = []

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            answer = super().call(operation, args)
            return losing(answer) if isinstance(answer, messages.State) else answer

    target = make_target(InProcess(Clock), level="invariants")
    Clock.calls.clear()
    clocked = replace(harness_run(target), clock=lambda: len(Clock.calls), began=0.0)
    examples = 60 if seconds is None else None
    options = FuzzOptions(replay_every=0, keep_going=keep_going)
    stream = list(fuzz(clocked, Budget(examples, seconds), 1, findings, options))
    return stream, len(Clock.calls)


def titles(stream: list[events.AnyEvent]) -> list[str]:
    return [one.title for one in found_in(stream)]


def test_making_a_failure_smaller_is_part_of_the_time(
    make_target: MakeTarget, tmp_path: Path
) -> None:
    stream, needed = timed(make_target, tmp_path, None)
    (whole,) = titles(stream)
    assert CUT_SHORT not in whole
    # The failure is found early, and most of the time goes into making it smaller.
    limit = int(needed * 0.4)
    stream, took = timed(make_target, tmp_path, limit)
    (title,) = titles(stream)
    assert took <= limit
    assert title.endswith(f"({CUT_SHORT})")
    assert summarize(stream).verdict == "failed"
    stream, took = timed(make_target, tmp_path, 2 * needed)
    assert titles(stream) == [whole]


def test_a_failure_leaves_time_to_look_for_others(make_target: MakeTarget, tmp_path: Path) -> None:
    _, needed = timed(make_target, tmp_path, None)
    limit = int(needed * 0.6)
    stream, took = timed(make_target, tmp_path, limit, keep_going=True)
    assert took <= limit
    (title,) = titles(stream)
    assert title.endswith(f"({CUT_SHORT})")
    assert summarize(stream).tally.total > 1
    (found,) = found_in(stream)
    assert found.at < 0.9 * limit


def test_of_who_only_discovers_nothing_is_tested(make_target: MakeTarget, tmp_path: Path) -> None:
    target = make_target(InProcess(Reference), operations=("discover",))
    summary = summarize(run(target, tmp_path))
    assert summary.verdict == "nothing tested"
    assert summary.exit_code == 2


@pytest.mark.slow
def test_a_difference_that_breaks_no_invariant_is_found_and_left_with_what_it_needs(
    make_target: MakeTarget, changed: Callable[..., Any], tmp_path: Path
) -> None:
    def turned(answer: messages.NodeHints) -> messages.NodeHints:
        memory = {name: hints and hints[::-1] for name, hints in answer.memory.items()}
        return msgspec.structs.replace(answer, memory=memory)

    target = make_target(InProcess(lambda: changed(hints=turned)), oracle=True)
    stream = run(target, tmp_path, examples=200)
    (found,) = found_in(stream)
    assert found.message.startswith("differs from the reference: memory")
    assert found.requirements == ()
    assert found.file is not None
    (case,) = loading.read_file(Path(found.file))
    assert [step.verb for step in case.steps] == ["start", "hints"]
    assert case.machine is not None
    assert len(case.machine.topology or ()) == 2


def _lost() -> None:
    """As in a callback of the garbage collector."""


def _mistaken() -> None:
    raise AssertionError("an example is not repeatable")


def test_an_interrupt_in_the_callback_of_the_garbage_collector_is_only_noted() -> None:
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
    ("sent", "becomes"),
    [(signal.SIGINT, _lost), (signal.SIGTERM, _mistaken), (signal.SIGHUP, _lost)],
)
def test_an_interrupt_ends_the_run_also_where_it_is_lost_or_mistaken(
    becomes: Callable[[], None],
    sent: signal.Signals,
    make_target: MakeTarget,
    changed: Callable[..., Any],
    tmp_path: Path,
) -> None:
    asked: list[messages.State] = []

    def interrupted(state: messages.State) -> messages.State:
        asked.append(state)
        if len(asked) == 1:
            try:
                signal.raise_signal(sent)
            except KeyboardInterrupt:
                becomes()
        return state

    target = make_target(InProcess(lambda: changed(state=interrupted)))
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for one in before:
        signal.signal(one, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(target, tmp_path / "findings")
        assert [signal.getsignal(one) for one in before] == [signal.default_int_handler] * 3
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def test_what_failed_is_kept_when_the_search_for_a_smaller_one_is_interrupted(
    make_target: MakeTarget, changed: Callable[..., Any], tmp_path: Path
) -> None:
    failures = 0

    def impatient(state: messages.State) -> messages.State:
        nonlocal failures
        broken = losing(state)
        failures += broken != state
        if failures > 2:
            raise KeyboardInterrupt
        return broken

    target = make_target(InProcess(lambda: changed(state=impatient)))
    findings = tmp_path / "findings"
    with pytest.raises(KeyboardInterrupt):
        run(target, findings)
    (file,) = findings.iterdir()
    assert loading.read_file(file)
