"""A difference is shown on two labelled lines, `expected` and `got`, and never on one."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.conformance.diagnosis.prescription import next_steps
from numaproof.protocol.diagnosis import Diagnosis, Exchange, Finding
from numaproof.protocol.events import AnsweredByChance, ReportedFinding
from numaproof.reports.diagnosis import diagnosis_lines
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.terminal import Terminal
from numaproof.reports.transcript import transcript

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent

PLACE = "differs from the reference: containers.app.cpus"
FOUND = ReportedFinding("reference", "containers.app.cpus", PLACE, "1,9", "1,8")
DIFFERENCE = str(FOUND)
LABELLED = [PLACE, "  expected 1,9", "  got      1,8"]


def shown(events: list[AnyEvent]) -> list[str]:
    stream = io.StringIO()
    with Terminal(stream, {}) as terminal:
        for event in events:
            terminal.show(event)
    return stream.getvalue().splitlines()


def without_indent(lines: list[str], count: int, indent: int) -> list[str]:
    assert all(not line[:indent].strip() for line in lines[:count])
    return [line[indent:] for line in lines[:count]]


def test_at_the_end_of_a_replayed_run(run: MakeRun) -> None:
    first, *sides = list(transcript(run(outcome="fail", message=DIFFERENCE, finding=FOUND)))[-3:]
    assert first == f"  ✗ fail: {PLACE}"
    assert without_indent(sides, 2, 4) == LABELLED[1:]


def test_in_what_to_do_next() -> None:
    finding = Finding(DIFFERENCE, right="answer as documented", after="admit (3)", finding=FOUND)
    exchange = Exchange(4, 1, "state", "about", "{}", "{}", 0.1, (finding,))
    steps = next_steps("driver", [exchange], None, ())
    diagnosis = Diagnosis("driver", "mine", False, 1.0, (exchange,), (), ())
    findings = tuple(None if isinstance(one, str) else one for one in steps)
    diagnosis = replace(diagnosis, next_steps=tuple(map(str, steps)), next_findings=findings)
    lines = [line.plain for line in diagnosis_lines(diagnosis)]
    at = lines.index("What to do next:")
    assert lines[at + 1 : at + 4] == [
        f"  1. shown by state (4), after admit (3): {PLACE} → answer as documented",
        "       expected 1,9",
        "       got      1,8",
    ]


def test_a_progress_line_shows_what_differs_and_no_sides(stream: MakeStream, run: MakeRun) -> None:
    _, line, *_ = shown(stream(run(outcome="fail", message=DIFFERENCE, finding=FOUND)))
    assert line.endswith(f"  {PLACE}")


def test_a_divergence_is_written_once(
    stream: MakeStream, story: MakeRun, divergence: MakeDivergence
) -> None:
    (_, admit) = story(DIFFERENCE).steps
    seen = replace(FOUND, what="containers.app.cpus differs")
    answered = replace(
        admit,
        problems=(str(seen),),
        findings=(seen,),
        answer={"containers": {"app": {"cpus": "1,8", "exclusive": "1,8"}}},
        expected={"containers": {"app": {"cpus": "1,9", "exclusive": "1,9"}}},
    )
    title = "seed 3: admit: containers.app.cpus differs"
    finding = replace(FOUND, what=title)
    found = divergence(
        title=title, message=str(finding), finding=finding, steps=(answered,), outcome="fail"
    )
    lines = shown(stream(found, start={"kind": "diff"}))
    assert [line for line in lines if title in line] == [f"✗ FAIL  {title}"] * 2
    assert [line.split()[0] for line in lines if "containers.app" in line and "✗" not in line][
        -2:
    ] == ["containers.app.cpus", "containers.app.exclusive"]


def test_what_chance_decides_has_its_sides(stream: MakeStream) -> None:
    by_chance = AnsweredByChance(
        at=1.0, scenario="seed 1", call=3, operation="admit", message=DIFFERENCE, finding=FOUND
    )
    lines = shown(stream(by_chance, start={"kind": "diff"}))
    at = lines.index(f"answer differs from run to run: seed 1, call 3: {PLACE}")
    assert lines[at + 1 : at + 3] == LABELLED[1:]


def test_a_line_of_a_report_has_no_sides(stream: MakeStream, run: MakeRun) -> None:
    known = run(outcome="known failure", message=DIFFERENCE, finding=FOUND, signature="mine")
    text = markdown(summarize(stream(known)))
    assert "containers.app.cpus" in text
    assert "1,9" not in text


def test_a_stream_without_fields_shows_the_sentence(stream: MakeStream, run: MakeRun) -> None:
    _, line, *_ = shown(stream(run(outcome="fail", message=DIFFERENCE)))
    assert line.endswith(f"  {PLACE} expected: 1,9 got: 1,8")
