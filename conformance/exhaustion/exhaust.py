"""`numaproof exhaust`: enumerates what is within a bound and reports each cause of failure once."""

from __future__ import annotations

import shlex
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof.conformance.exhaustion.kinds import KINDS
from numaproof.conformance.exhaustion.search import OtherSideFailure, Search
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol import events
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.exhaustion.bounds import Bound

_MAX_CAUSES = 20
"""The number of causes after which a run ends."""


def exhaust(
    harness_run: HarnessRun,
    bound: Bound,
    kinds: Collection[str],
    findings: Path,
    other: Target | None = None,
) -> Iterator[events.AnyEvent]:
    """Enumerates what is within a bound and yields events.

    If `other` fails to answer, the run ends as incomplete.

    Args:
        harness_run: the run, with its target.
        bound: how large the machines, hints and lives get.
        kinds: which of `KINDS` to enumerate.
        findings: the directory for the case files of findings.
        other: an implementation to compare answers with, instead of the reference.
    """
    ordered_kinds = [kind for kind in KINDS if kind in kinds]
    yield replace(
        harness_run.started_event("exhaust", 0, {}),
        bound=tuple(map(bound.sentence, ordered_kinds)),
        bound_name=bound.name,
        left=other and other.hello,
    )
    search = Search(harness_run.target, other)
    failed = ""
    try:
        yield from _findings(search, harness_run, bound, ordered_kinds, findings)
    except OtherSideFailure as failure:
        failed = f"the program to compare with failed: {failure}"
    ended = harness_run.ended_event(
        {str(one): count for one, count in search.outcomes.items()},
        other_implementations=[other.implementation] if other else [],
    )
    yield replace(ended, complete=not failed, message=failed)


def _findings(
    search: Search, harness_run: HarnessRun, bound: Bound, kinds: Sequence[str], findings: Path
) -> Iterator[events.AnyEvent]:
    """Yields the first failure of each cause, and the progress after each part."""
    causes: set[str] = set()
    rules = release(harness_run.target.kubernetes, follows_docs=True)
    for part in chain.from_iterable(bound.parts(kind, rules) for kind in kinds):
        for failure in search.failures(part):
            if failure.signature not in causes:
                causes.add(failure.signature)
                event = FuzzFinding.of_failure(failure).event(harness_run, findings)
                command = search.other and _diff_command(harness_run.target, search.other, event)
                yield replace(event, reproduce=command or event.reproduce)
        at = harness_run.elapsed_seconds()
        yield events.Progress(at=at, played_examples=search.outcomes.total())
        if len(causes) >= _MAX_CAUSES:
            return


def _diff_command(target: Target, other: Target, event: events.DivergenceFound) -> str:
    """The command that compares both implementations with the case of a finding."""
    options: tuple[str, ...] = ("--right", shlex.join(other.command))
    if target.command:
        options = ("--left", *options[1:], "--right", shlex.join(target.command))
    release_option = ("--kubernetes", target.kubernetes)
    return quote_words(("numaproof", "diff", *options, *release_option, event.file or ""))
