"""Violators of what becomes of refused pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("refused-pods")


def _fate(changes: Changes, change: Callable[[Any], dict[str, str]]) -> None:
    """Lets something else become of a refused pod."""

    def fate(original: Any, self: Any, error: Any) -> Any:
        pod = original(self, error)
        return None if pod is None else msgspec.structs.replace(pod, **change(pod))

    changes.around(StartedNode, "fate", fate)


@seeds("NODE-REFUSED-002")
def refused_pods_stay_pending(changes: Changes) -> None:
    """A plausible author lets a pod wait for room."""
    _fate(changes, lambda _: {"phase": "Pending"})


@seeds("NODE-REFUSED-002")
def refused_pods_are_terminated(changes: Changes) -> None:
    """A plausible author takes the documents' word for the name of a phase."""
    _fate(changes, lambda _: {"phase": "Terminated"})


@seeds("NODE-REFUSED-002")
def only_pods_refused_for_their_affinity_are_failed(changes: Changes) -> None:
    """A plausible author reads the sentence in the chapter on topology alone."""
    _fate(
        changes,
        lambda pod: {} if pod.reason == "TopologyAffinityError" else {"phase": "Pending"},
    )


@seeds("NODE-REFUSED-002")
def refused_pods_have_one_reason(changes: Changes) -> None:
    """A plausible author has one reason for whatever goes wrong in an admission."""
    _fate(changes, lambda _: {"reason": "UnexpectedAdmissionError"})


@seeds("NODE-REFUSED-002")
def pods_refused_for_smt_have_the_reason_of_the_topology(changes: Changes) -> None:
    """A plausible author takes whole cores for a matter of topology."""

    def change(pod: Any) -> dict[str, str]:
        return {"reason": "TopologyAffinityError"} if pod.reason == "SMTAlignmentError" else {}

    _fate(changes, change)


@seeds("NODE-REFUSED-003")
def refused_pods_say_only_why(changes: Changes) -> None:
    """A plausible author writes the message as it is."""
    _fate(changes, lambda pod: {"message": pod.event})


@seeds("NODE-REFUSED-003")
def events_say_that_pods_were_rejected(changes: Changes) -> None:
    """A plausible author writes one text into status and event."""
    _fate(changes, lambda pod: {"event": pod.message})


@seeds("NODE-REFUSED-003")
def events_name_the_reason(changes: Changes) -> None:
    """A plausible author writes the reason before the message."""
    _fate(changes, lambda pod: {"event": f"{pod.reason}: {pod.event}"})
