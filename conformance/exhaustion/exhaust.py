"""`numaproof exhaust`: enumerates what is within a bound and reports each cause of failure once."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.conformance.exhaustion.kinds import KINDS
from numaproof.conformance.exhaustion.search import Search
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding
from numaproof.protocol import events
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.exhaustion.bounds import Bound

_MAX_CAUSES = 20
"""The number of causes after which a run ends."""


def exhaust(
    harness_run: HarnessRun, bound: Bound, kinds: Collection[str], findings: Path
) -> Iterator[events.AnyEvent]:
    """Enumerates what is within a bound and yields events.

    Args:
        harness_run: the run, with its target.
        bound: how large the machines, hints and lives get.
        kinds: which of `KINDS` to enumerate.
        findings: the directory for the case files of findings.
    """
    ordered_kinds = [kind for kind in KINDS if kind in kinds]
    yield replace(
        harness_run.started_event("exhaust", 0, {}),
        bound=tuple(map(bound.sentence, ordered_kinds)),
        bound_name=bound.name,
    )
    search = Search(harness_run.target)
    causes: set[str] = set()
    rules = release(harness_run.target.kubernetes, follows_docs=True)
    for part in chain.from_iterable(bound.parts(kind, rules) for kind in ordered_kinds):
        for failure in search.failures(part):
            if failure.signature not in causes:
                causes.add(failure.signature)
                yield FuzzFinding.of_failure(failure).event(harness_run, findings)
        yield events.Progress(
            at=harness_run.elapsed_seconds(), played_examples=search.outcomes.total()
        )
        if len(causes) >= _MAX_CAUSES:
            break
    yield harness_run.ended_event({str(one): count for one, count in search.outcomes.items()})
