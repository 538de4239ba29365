"""Computes the quick set: case runs that catch all seeded bugs, selected by greedy set cover.

The greedy cover is at most a few runs larger than a minimum cover, which would need an exact
solver. Bugs are covered at every level at which a case run catches them, from the lowest level
up, so the set is also useful for implementations that claim a low level.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import yaml

from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.conformance.selection.quick import QuickRun
from numaproof.protocol.messages import LEVELS
from numaproof.workdir.scratch import scratch_folder
from quality.catalogue import BUGS
from quality.search import search
from quality.suite import bundled_suite
from quality.trials import CaseTrials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.protocol.messages import Level

_HEAD = """\
# The case runs of `numaproof check --quick`: a greedy set cover of all seeded bugs, at every level
# of comparison at which a case catches them. Written by `tox run -e quality -- quick-set`.
"""


class Place(NamedTuple):
    """A case run."""

    case: str
    machine: str
    kubernetes: str


Kills = dict[Place, tuple["Level", ...]]
"""The case runs that catch a bug, with the levels at which they do."""


def kills(bugs: Sequence[str], jobs: int) -> Iterator[tuple[str, Kills]]:
    """Yields each seeded bug's id and the case runs that catch it, using `jobs` processes."""
    with scratch_folder() as scratch:
        workers: list[ProcessWorker[str, tuple[str, Kills]]] = [
            ProcessWorker(_searcher, scratch / str(number))
            for number in range(min(jobs, len(bugs)))
        ]
        yield from spread(bugs, workers)


def recorded(runs: Iterable[QuickRun]) -> dict[str, Kills]:
    """Returns the case runs that catch each bug according to a quick set."""
    found: dict[str, dict[Place, list[Level]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        place = Place(run.case, run.machine, run.kubernetes)
        for level, bugs in run.catches.items():
            for bug in bugs:
                found[bug][place].append(level)
    return {
        bug: {place: tuple(levels) for place, levels in places.items()}
        for bug, places in found.items()
    }


def _searcher(scratch: Path) -> Callable[[str], tuple[str, Kills]]:
    """Creates a worker process's function that finds the kills of a bug."""
    trials = CaseTrials(bundled_suite(scratch), scratch / "runs")
    bugs = {bug.id: bug for bug in BUGS}

    def searcher(name: str) -> tuple[str, Kills]:
        bug = bugs[name]
        caught = search(name, trials.of(bug), min_runs=trials.near(bug)).catches
        return name, {
            Place(one.run, one.machine, one.kubernetes): trials.levels(bug, one) for one in caught
        }

    return searcher


def cover(kills_by_bug: Mapping[str, Kills]) -> tuple[QuickRun, ...]:
    """Selects case runs that catch every bug at every level at which any run does.

    Args:
        kills_by_bug: the kills of each bug by its id, in any order.
    """
    chosen: dict[Place, dict[Level, tuple[str, ...]]] = {}
    for level in LEVELS:
        catches: dict[Place, set[str]] = defaultdict(set)
        for bug, places in kills_by_bug.items():
            for place, levels in places.items():
                if level in levels:
                    catches[place].add(bug)
        left = {bug for caught in catches.values() for bug in caught}
        taken = sorted(chosen)
        while left:
            # Prefer runs that were selected for a lower level.
            best = max(
                taken or sorted(catches), key=lambda candidate: len(left & catches[candidate])
            )
            new = left & catches[best]
            if taken:
                taken.remove(best)
            if new:
                chosen.setdefault(best, {})[level] = tuple(sorted(new))
                left -= new
    return tuple(QuickRun(*place, catches) for place, catches in sorted(chosen.items()))


def text(runs: Sequence[QuickRun]) -> str:
    """Returns the content of the quick set's file."""
    plain = {"runs": [msgspec.to_builtins(run) for run in runs]}
    return _HEAD + yaml.safe_dump(plain, sort_keys=False, width=100)
