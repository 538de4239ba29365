"""A fuzz run keeps the smallest example of each known failure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.fuzz_runs import found_in, fuzz_events, replay_case
from builders.targets import ChangedReference, changed_reference, target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import Crashed
from numaproof.conformance.fuzzing import fuzz_finding
from numaproof.conformance.fuzzing.exploration import Explorer
from numaproof.conformance.fuzzing.fuzz_finding import KnownExamples
from numaproof.conformance.fuzzing.fuzz_options import FuzzOptions
from numaproof.conformance.known_failures.entries import (
    KnownFailure,
    KnownFailureEntry,
    KnownFailures,
)
from numaproof.protocol import events, messages
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.fuzzing.exploration import ExampleRun

REMOVE = "fault at remove: no"
HINTS = "fault at hints: no"


def no(_: messages.Answer) -> messages.Fault:
    return messages.Fault("no", trace="a trace: it broke")


def options_knowing(*signatures: str) -> FuzzOptions:
    """Options that make these causes known."""
    rows = [
        KnownFailureEntry(KnownFailure("scenario", one, f"finding: {one.split()[2]}"), "k.yaml:1")
        for one in signatures
    ]
    return FuzzOptions(replay_every=0, keep_going=True, known_failures=KnownFailures(rows))


def run(target: Target, findings: Path, *signatures: str) -> list[events.AnyEvent]:
    return [*fuzz_events(target, findings, 40, options=options_knowing(*signatures))]


@pytest.fixture
def broken_target() -> Target:
    """Breaks on `remove` and `hints`."""
    return target_of(changed_reference(remove=no, hints=no))


def test_each_known_cause_has_one_replayable_example(
    broken_target: Target, reference: Target, tmp_path: Path
) -> None:
    findings = tmp_path / "findings"
    stream = run(broken_target, findings, REMOVE, HINTS)
    one, two = found_in(stream)
    assert stream[-4:-2] == [one, two]
    assert [one.signature, two.signature] == [HINTS, REMOVE]
    assert (one.outcome, one.reason) == ("known failure", "finding: hints:")
    assert (one.title, one.message) == ("no", "finding: hints:: no")
    assert one.steps[-1].operation == "hints"
    assert {Path(event.file or "") for event in (one, two)} == {*findings.iterdir()}
    tally = summarize(stream).tally
    assert (tally.total, tally.of("known failure") > 2) == (40, True)
    (case,) = loading.read_file(Path(two.file or ""))
    assert replay_case(case, broken_target, tmp_path / "broken").signature == REMOVE
    assert replay_case(case, reference, tmp_path / "reference").signature == ""


def test_the_smallest_example_is_kept_and_briefly_shrunk(
    broken_target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: dict[str, list[tuple[int, int]]] = {}
    tried: list[object] = []
    add, play = KnownExamples.add, Explorer.play

    def record_example(self: KnownExamples, example: ExampleRun) -> None:
        sizes = example.size, len(example.steps)
        met.setdefault(example.scenario_run().signature, []).append(sizes)
        add(self, example)

    def record_play(self: Explorer, scenario: Any) -> Any:
        tried.append(scenario)
        return play(self, scenario)

    def lengths(share: int) -> list[int]:
        monkeypatch.setattr(fuzz_finding, "SHARE", share)
        stream = run(broken_target, tmp_path / str(share), REMOVE, HINTS)
        cases = [loading.read_file(Path(one.file or ""))[0] for one in found_in(stream)]
        return [len(case.steps) for case in cases]

    monkeypatch.setattr(KnownExamples, "add", record_example)
    monkeypatch.setattr(Explorer, "play", record_play)
    as_met = lengths(1000)
    assert not tried
    assert as_met == [min(met[HINTS])[1], min(met[REMOVE])[1]]
    assert sum(lengths(4)) < sum(as_met)
    assert 0 < len(tried) <= 10


def test_an_interrupted_run_reports_known_causes(tmp_path: Path) -> None:
    failures = 0

    def impatient(answer: messages.Answer) -> messages.Fault:
        nonlocal failures
        failures += 1
        if failures > 2:
            raise KeyboardInterrupt
        return no(answer)

    stream = fuzz_events(
        target_of(changed_reference(hints=impatient)), tmp_path, 40, options=options_knowing(HINTS)
    )
    seen: list[events.AnyEvent] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(stream)
    (one,) = found_in(seen)
    assert one.outcome == "known failure"
    assert Path(one.file or "").is_file()


@pytest.mark.parametrize("ends", [False, True])
def test_shrinking_stops_when_the_program_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    asked: list[str] = []
    shrinks = False
    shrink = KnownExamples.shrink

    def breaks(answer: messages.Answer) -> messages.Answer:
        if shrinks and ends:
            asked.append("hints")
            raise Crashed("it ended")
        return no(answer)

    def shrinking(self: KnownExamples, explorer: Explorer, examples: int) -> None:
        nonlocal shrinks
        shrinks = True
        shrink(self, explorer, examples)

    monkeypatch.setattr(fuzz_finding, "SHARE", 1)
    monkeypatch.setattr(KnownExamples, "shrink", shrinking)
    (one,) = found_in(run(target_of(ChangedReference(hints=breaks)), tmp_path, HINTS))
    assert one.signature == HINTS
    (case,) = loading.read_file(Path(one.file or ""))
    if ends:
        assert asked == ["hints"]
    else:
        assert [step.verb for step in case.steps] == ["start", "hints"]
