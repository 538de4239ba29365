"""Events written by version 0.1 are still readable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from numaproof.protocol import codec, events, saved_events

OLD: dict[str, Any] = {
    "event": "case finished",
    "at": 1.0,
    "case": "c",
    "title": "t",
    "machine": "m",
    "outcome": "fail",
    "seconds": 0.5,
    "requirements": ["A"],
    "violated": ["B"],
    "unseen": ["C"],
    "kept": ["D"],
    "agreed": "placement",
    "unclaimed": "operation hints",
    "declined": ["feature flags"],
    "parted": {"side": "kubelet", "defects": ["d"]},
    "finding": {"source": "reference", "rule": "cpus", "what": "w", "expected": "1", "got": "2"},
    "steps": [
        {"operation": "admit", "args": {"left": 1}, "findings": [{"source": "s", "rule": "r"}]}
    ],
}


def test_old_field_names_are_still_read() -> None:
    event = saved_events.decode(json.dumps(OLD).encode(), events.AnyEvent)
    assert isinstance(event, events.CaseFinished)
    assert event.violated_requirements == ("B",)
    assert (event.undiscovered, event.unaffected) == (("C",), ("D",))
    assert event.agreed_level == "placement"
    assert event.missing_claim == "operation hints"
    assert event.declined_claims == ("feature flags",)
    assert event.baseline_divergence == events.BaselineDivergence("kubelet", ("d",))
    assert event.finding is not None
    assert event.finding.actual == "2"
    assert event.steps[0].args == {"left": 1}


def test_the_end_of_an_old_run_is_decoded() -> None:
    old = {
        "event": "campaign ended",
        "at": 1,
        "complete": True,
        "outcomes": {},
        "untested": ["A"],
        "left": ["12 sleep"],
        "claims": {"assumed": True, "unclaimed": {"x": 1}, "declined": 2},
    }
    event = saved_events.decode(json.dumps(old).encode(), events.AnyEvent)
    assert isinstance(event, events.RunEnded)
    assert event.untested_requirements == ("A",)
    assert event.leftover_processes == ("12 sleep",)
    assert event.claims == events.ClaimsReview(True, {"x": 1}, 2)


@pytest.mark.parametrize("line", [b"[]", b"{", b'{"event": "progress", "at": 1, "lost": 2}'])
def test_unknown_fields_in_events_are_refused(line: bytes) -> None:
    with pytest.raises(codec.ProtocolError):
        saved_events.decode(line, events.AnyEvent)


def test_an_old_event_with_a_wrong_value_is_refused() -> None:
    with pytest.raises(codec.ProtocolError, match="title"):
        saved_events.decode(json.dumps(OLD | {"title": 1}).encode(), events.AnyEvent)
