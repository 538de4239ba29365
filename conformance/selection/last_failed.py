"""The case runs that failed in an earlier run, for `check --last-failed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.known_failures.entries import MISSING
from numaproof.protocol.events import GOOD, AnyEvent, CaseFinished, RunStarted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol.events import CaseOnMachine


def failed_runs(events: Iterable[AnyEvent]) -> tuple[CaseOnMachine, ...]:
    """The case runs of a run that failed, in order.

    If it already played only earlier failures, those that it didn't reach count as failed.
    """
    outcomes: dict[CaseOnMachine, bool] = {}
    for event in events:
        match event:
            case RunStarted():
                outcomes |= dict.fromkeys(event.failed_before, True)
            case CaseFinished() if event.outcome != MISSING:
                outcomes[event.case, event.machine] = event.outcome not in GOOD
    return tuple(run for run, failed in outcomes.items() if failed)


def only_failed(
    runs: Iterable[SelectedCase], failures: Iterable[CaseOnMachine]
) -> list[SelectedCase]:
    """The runs that failed."""
    wanted = frozenset(failures)
    return [one for one in runs if (one.case.id, one.machine.name) in wanted]


def only_failed_recordings(
    recordings: Iterable[Recording], failures: Iterable[CaseOnMachine]
) -> tuple[Recording, ...]:
    """The recordings that failed; each has its own machine."""
    wanted = {case for case, _ in failures}
    return tuple(one for one in recordings if one.case_id in wanted)
