"""What to do next shows a difference on two labelled lines, as every page does."""

from __future__ import annotations

from numaproof.conformance.diagnosis.prescription import next_steps
from numaproof.protocol.diagnosis import Diagnosis, Exchange, Finding
from numaproof.protocol.mismatch import Mismatch
from numaproof.reports.diagnosis import diagnosis_lines

PLACE = "differs from the reference: containers.app.cpus"
DIFFERENCE = str(Mismatch(PLACE, "1,9", "1,8"))


def test_in_what_to_do_next() -> None:
    finding = Finding(DIFFERENCE, right="answer as documented", after="admit (3)")
    exchange = Exchange(4, 1, "state", "about", "{}", "{}", 0.1, (finding,))
    steps = next_steps("driver", [exchange], None, ())
    diagnosis = Diagnosis("driver", "mine", False, 1.0, (exchange,), (), steps)
    lines = [line.plain for line in diagnosis_lines(diagnosis)]
    at = lines.index("What to do next:")
    assert lines[at + 1 : at + 4] == [
        f"  1. shown by state (4), after admit (3): {PLACE} → answer as documented",
        "       expected 1,9",
        "       got      1,8",
    ]
