"""Next steps show a difference on two labelled lines, like every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.conformance.doctor.examination import next_steps
from numaproof.protocol.diagnosis import Diagnosis, Exchange, Finding
from numaproof.protocol.events import ReportedFinding
from numaproof.reports.diagnosis import diagnosis_lines
from numaproof.reports.story import transcript

if TYPE_CHECKING:
    from conftest import MakeRun

PLACE = "differs from the reference: containers.app.cpus"
FOUND = ReportedFinding("reference", "containers.app.cpus", PLACE, "1,9", "1,8")
DIFFERENCE = str(FOUND)


def test_differences_in_next_steps_have_two_lines() -> None:
    finding = Finding(DIFFERENCE, right="answer as documented", after="admit (3)", finding=FOUND)
    exchange = Exchange(4, 1, "state", "about", "{}", "{}", 0.1, (finding,))
    steps = next_steps("driver", [exchange], None, ())
    diagnosis = Diagnosis("driver", "mine", False, 1.0, (exchange,), (), ())
    findings = tuple(None if isinstance(one, str) else one for one in steps)
    diagnosis = replace(diagnosis, next_steps=tuple(map(str, steps)), next_findings=findings)
    lines = [line.plain for line in diagnosis_lines(diagnosis, 150)]
    at = lines.index("What to do next:")
    assert lines[at + 1 : at + 4] == [
        f"  1. shown by state (4), after admit (3): {PLACE} → answer as documented",
        "       expected 1,9",
        "       got      1,8",
    ]


def test_events_without_fields_show_the_sentence(run: MakeRun) -> None:
    *_, last = transcript(run(outcome="fail", message=DIFFERENCE))
    assert last == f"  ✗ fail: {PLACE} expected: 1,9 got: 1,8"
