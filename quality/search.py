"""The search for runs that catch a faulty reference."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

MAX_RUNS = 3000
"""The maximum number of runs for a bug."""


class Catch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that catches a bug.

    Attributes:
        run: the id of the case, or the seed of the scenario.
        machine: the name of the machine, unless the run defines its own.
        kubernetes: the release.
        broke: the broken invariants or other failures.
    """

    run: str
    machine: str
    kubernetes: str
    broke: tuple[str, ...] = ()


class SearchResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of the search for one bug.

    Attributes:
        bug: the id of the bug.
        runs: how many runs were made.
        catches: the runs that caught the bug, in order.
    """

    bug: str
    runs: int
    catches: tuple[Catch, ...] = ()

    @property
    def has_survived(self) -> bool:
        """Whether no run caught the bug."""
        return not self.catches


def search(
    bug: str,
    trials: Iterable[Callable[[], Catch | None]],
    min_runs: int = 0,
    max_runs: int = MAX_RUNS,
) -> SearchResult:
    """Makes runs until one catches the bug.

    Args:
        bug: the id of the bug.
        trials: the runs, in order.
        min_runs: the minimum number of runs, even if one catches the bug earlier.
        max_runs: the maximum number of runs.
    """
    runs = 0
    catches: list[Catch] = []
    for trial in islice(trials, max_runs):
        if catches and runs >= min_runs:
            break
        runs += 1
        catch = trial()
        if catch is not None:
            catches.append(catch)
    return SearchResult(bug, runs, tuple(catches))


def search_all(
    bugs: Sequence[str], begin: Callable[[Path], Callable[[str], SearchResult]], jobs: int
) -> Iterator[SearchResult]:
    """Searches for several bugs in parallel and yields the results as they complete.

    Args:
        bugs: the ids.
        begin: creates the search function in each process, given a folder.
        jobs: the number of processes.
    """
    with scratch_folder() as scratch:
        workers: list[ProcessWorker[str, SearchResult]] = [
            ProcessWorker(begin, scratch / str(number)) for number in range(min(jobs, len(bugs)))
        ]
        yield from spread(bugs, workers)
