"""A finding stands at the line that shows it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis, Exchange, Finding

    Examine = Callable[..., Diagnosis]

LISTED = 'return {"ok": {"shared": listed(self.shared()), "pods": pods,'
SAVED = 'for uid, held in saved["pods"].items() if uid in there'


def first(diagnosis: Diagnosis, invariant: str) -> tuple[Exchange, Finding]:
    return next(
        (exchange, finding)
        for exchange in diagnosis.exchanges
        for finding in exchange.findings
        if finding.cause == invariant
    )


def test_what_only_the_state_shows_stands_there_with_the_call_before_it(examined: Examine) -> None:
    left = LISTED.replace(" pods,", ' {**pods, "uid-old": {}},')
    diagnosis = examined((LISTED, left))
    exchange, finding = first(diagnosis, "state-lists-pods-on-node")
    assert (exchange.step, exchange.number) == ("state", 4)
    assert finding.after == "start (3)"
    assert diagnosis.next_steps[0].startswith("shown by state (4), after start (3): the state")


def test_the_state_right_after_a_restart_must_show_the_pods(examined: Examine) -> None:
    diagnosis = examined((SAVED, "for uid, held in () if uid"))
    exchange, finding = first(diagnosis, "state-lists-pods-on-node")
    assert exchange.step == "state"
    assert finding.after.startswith("start ")


def test_other_cpus_after_a_restart_are_named_once_the_pods_are_admitted_again(
    examined: Examine,
) -> None:
    diagnosis = examined((SAVED, "for uid, held in () if uid"))
    exchange, finding = first(diagnosis, "exclusive-set-stays")
    assert exchange.step == "state"
    assert finding.after.startswith("admit ")
