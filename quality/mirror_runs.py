"""Plays cases against the mirrors, as `numaproof check` would, and lists who is blamed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from numaproof.conformance.check import check
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import InProcess, handshake
from numaproof.conformance.execution.run import Target, default_baseline, reference
from numaproof.protocol import events
from quality.mirrors import Mirror

if TYPE_CHECKING:
    from numaproof.protocol.messages import Level
    from quality.suite import Suite


def target(name: str, level: Level) -> Target:
    """Returns a mirror as a target that is judged like any program."""
    implementation = InProcess(partial(Mirror, name, level))
    hello = handshake(implementation, "numaproof")
    baseline = default_baseline(hello)
    newest = hello.kubernetes[-1]
    return Target(implementation, hello, newest, level, oracle=reference, baseline=baseline)


def blamed(name: str, level: Level, suite: Suite) -> tuple[int, list[str]]:
    """Plays a suite against a mirror; returns the number of runs, and the failures."""
    judged = target(name, level)
    runs = runner.select(suite.cases, suite.catalogue, judged)
    finished = [
        one
        for one in check(runs, HarnessRun(judged, suite.registry, "", ""))
        if isinstance(one, events.CaseFinished)
    ]
    failures = [one for one in finished if one.outcome not in events.GOOD]
    return len(finished), [f"{one.case} on {one.machine}: {one.message}" for one in failures]
