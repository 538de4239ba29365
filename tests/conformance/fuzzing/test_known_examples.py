"""What a fuzz run keeps of the failures that are known: the smallest example of each cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.fuzzed import found_in, fuzzed, replayed
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import Crashed, InProcess
from numaproof.conformance.execution.run import Target
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
from numaproof.reference.implementation import Reference
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from numaproof.conformance.fuzzing.exploration import ExampleRun

MakeTarget = Callable[..., Target]
Changed = Callable[..., Any]

REMOVE = "fault at remove: no"
HINTS = "fault at hints: no"


def no(_: messages.Answer) -> messages.Fault:
    return messages.Fault("no", trace="a trace: it broke")


def known(*signatures: str) -> FuzzOptions:
    """Options by which these causes are known."""
    rows = [
        KnownFailureEntry(KnownFailure("scenario", one, f"finding: {one.split()[2]}"), "k.yaml:1")
        for one in signatures
    ]
    return FuzzOptions(replay_every=0, keep_going=True, known=KnownFailures(rows))


def started(target: Target, findings: Path, options: FuzzOptions) -> Iterator[events.AnyEvent]:
    return fuzzed(target, findings, 40, options=options)


def run(target: Target, findings: Path, options: FuzzOptions) -> list[events.AnyEvent]:
    return [*started(target, findings, options)]


@pytest.fixture
def broken(make_target: MakeTarget, changed: Changed) -> Target:
    """Breaks when a pod is removed, and when it is asked for hints."""
    return make_target(InProcess(lambda: changed(remove=no, hints=no)))


def test_each_known_cause_leaves_an_example_that_replays_and_examples_count_once(
    broken: Target, reference: Target, tmp_path: Path
) -> None:
    findings = tmp_path / "findings"
    stream = run(broken, findings, known(REMOVE, HINTS))
    one, two = found_in(stream)
    assert stream[-4:-2] == [one, two]
    assert isinstance(stream[-1], events.RunEnded)
    assert [one.signature, two.signature] == [HINTS, REMOVE]
    assert (one.outcome, one.reason) == ("known failure", "finding: hints:")
    assert (one.title, one.message) == ("no", "finding: hints:: no")
    assert one.steps[-1].operation == "hints"
    assert {Path(event.file or "") for event in (one, two)} == {*findings.iterdir()}
    summary = summarize(stream)
    assert (summary.verdict, summary.exit_code) == ("passed", 0)
    assert summary.tally.total == 40
    assert summary.tally.of("known failure") > 2
    assert two.file is not None
    assert two.reproduce.startswith(f"numaproof replay {two.file} --kubernetes 1.35")
    (case,) = loading.read_file(Path(two.file))
    assert case.steps[0].verb == "start"
    assert replayed(case, broken, tmp_path / "broken").signature == REMOVE
    assert replayed(case, reference, tmp_path / "reference").signature == ""


def test_what_was_met_is_the_smallest_and_gets_smaller_by_few_tries(
    broken: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[ExampleRun] = []
    tried: list[object] = []
    add, play = KnownExamples.add, Explorer.play

    def noted(self: KnownExamples, example: ExampleRun) -> None:
        met.append(example)
        add(self, example)

    def counted(self: Explorer, scenario: Any) -> Any:
        tried.append(scenario)
        return play(self, scenario)

    def files(share: int) -> list[Path]:
        tried.clear()
        monkeypatch.setattr(fuzz_finding, "SHARE", share)
        stream = run(broken, tmp_path / str(share), known(REMOVE, HINTS))
        return [Path(one.file or "") for one in found_in(stream)]

    monkeypatch.setattr(KnownExamples, "add", noted)
    monkeypatch.setattr(Explorer, "play", counted)
    as_met = files(1000)
    assert not tried
    for cause, file in zip((HINTS, REMOVE), as_met, strict=True):
        several = [one for one in met if one.played().signature == cause]
        smallest = min(several, key=attrgetter("size"))
        (case,) = loading.read_file(file)
        assert len(several) > 1
        assert case.machine == smallest.machine
        assert [step.verb for step in case.steps] == [step.verb for step in smallest.steps]
    smaller = files(4)
    assert 0 < len(tried) <= 10
    assert sum(map(_size, smaller)) < sum(map(_size, as_met))


def _size(file: Path) -> int:
    return len(file.read_bytes())


def test_an_interrupted_run_tells_what_it_has_met(
    make_target: MakeTarget, changed: Changed, tmp_path: Path
) -> None:
    failures = 0

    def impatient(answer: messages.Answer) -> messages.Fault:
        nonlocal failures
        failures += 1
        if failures > 2:
            raise KeyboardInterrupt
        return no(answer)

    stream = started(
        make_target(InProcess(lambda: changed(hints=impatient))), tmp_path, known(HINTS)
    )
    seen: list[events.AnyEvent] = []
    with pytest.raises(KeyboardInterrupt):
        seen.extend(stream)
    (one,) = found_in(seen)
    assert one.outcome == "known failure"
    assert Path(one.file or "").is_file()


class Fragile(InProcess):
    """Breaks at requests for hints: first by a fault, and from some time on it ends."""

    ends = False
    asked = 0

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        if operation != "hints":
            return super().call(operation, args)
        self.asked += self.ends
        if self.ends:
            raise Crashed("it ended")
        return messages.Fault("no", trace="a trace: it broke")


def test_a_node_stays_started(
    make_target: MakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_finding, "SHARE", 1)
    (one,) = found_in(run(make_target(Fragile(Reference)), tmp_path, known(HINTS)))
    (case,) = loading.read_file(Path(one.file or ""))
    assert [step.verb for step in case.steps] == ["start", "hints"]


def test_a_try_that_breaks_the_program_is_the_last(
    make_target: MakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragile = Fragile(Reference)
    shrink = KnownExamples.shrink

    def ending(self: KnownExamples, explorer: Explorer, examples: int) -> None:
        fragile.ends = True
        shrink(self, explorer, examples)

    monkeypatch.setattr(fuzz_finding, "SHARE", 1)
    monkeypatch.setattr(KnownExamples, "shrink", ending)
    (one,) = found_in(run(make_target(fragile), tmp_path, known(HINTS)))
    assert one.signature == HINTS
    assert fragile.asked == 1
