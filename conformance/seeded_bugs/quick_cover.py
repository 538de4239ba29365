"""Makes the quick set: case runs that cover all seeded bugs, chosen by greedy set cover.

A minimum cover would take an exact solver; the greedy one is at most a few runs larger. Bugs are
covered at every level of comparison at which a case run catches them, the lowest level first, so
that an implementation that claims a low level has a useful set, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import yaml

from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.kill_matrix import bundled_suite
from numaproof.conformance.seeded_bugs.table_hunt import TableHunt
from numaproof.conformance.selection.quick import QuickRun
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol.messages import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.seeded_bugs.table_hunt import Kill
    from numaproof.protocol.messages import Level

BugKills = tuple[str, tuple["Kill", ...]]
"""The id of a bug, and the case runs that catch it."""

_HEAD = """\
# The case runs of `numaproof check --quick`: a greedy set cover of all seeded bugs, at every level
# of comparison at which a case catches them. Written by `numaproof gauntlet --quick-set FILE`.
"""

_Place = tuple[str, str, str]


@dataclass(frozen=True)
class _Candidate:
    """A case run, and the bugs that it catches at each level."""

    place: _Place
    calls: int
    catches: Mapping[Level, frozenset[str]]


def kills(jobs: int) -> Iterator[BugKills]:
    """What catches each seeded bug, as it comes, looked for by so many processes."""
    with scratch_folder() as scratch:
        workers = [
            ProcessWorker(_hunter, scratch / str(number)) for number in range(min(jobs, len(BUGS)))
        ]
        yield from spread([bug.id for bug in BUGS], workers)


def _hunter(scratch: Path) -> Callable[[str], BugKills]:
    """Makes the function that looks for the bug of an id, in a process of its own."""
    table = TableHunt(bundled_suite(scratch), scratch / "table")
    bugs = {bug.id: bug for bug in BUGS}
    return lambda name: (name, table.kills(bugs[name]))


def cover(found: Mapping[str, Sequence[Kill]]) -> tuple[QuickRun, ...]:
    """Few case runs that catch every bug at every level at which one of its own kills does.

    Args:
        found: the kills of each bug by its id. The order does not matter.
    """
    candidates = _candidates(found)
    chosen: dict[_Place, dict[Level, tuple[str, ...]]] = {}
    for level in LEVELS:
        left = {
            bug for one in candidates for bug in one.catches.get(level, frozenset())
        }  # to be covered at this level
        taken = [one for one in candidates if one.place in chosen]
        while left:
            best = max(
                taken or candidates,
                key=lambda one: (len(left & one.catches.get(level, frozenset())), -one.calls),
            )
            new = left & best.catches.get(level, frozenset())
            if taken:
                taken.remove(best)
            if new:
                chosen.setdefault(best.place, {})[level] = tuple(sorted(new))
                left -= new
    return tuple(QuickRun(*place, catches) for place, catches in sorted(chosen.items()))


def _candidates(found: Mapping[str, Sequence[Kill]]) -> list[_Candidate]:
    by_place: dict[_Place, dict[Level, set[str]]] = {}
    calls: dict[_Place, int] = {}
    for bug, runs in found.items():
        for kill in runs:
            place = (kill.case, kill.machine, kill.kubernetes)
            calls[place] = kill.calls
            for level in kill.levels:
                by_place.setdefault(place, {}).setdefault(level, set()).add(bug)
    return [
        _Candidate(place, calls[place], {level: frozenset(bugs) for level, bugs in levels.items()})
        for place, levels in sorted(by_place.items())
    ]


def text(runs: Sequence[QuickRun]) -> str:
    """The quick set as its file has it."""
    plain = {"runs": [msgspec.to_builtins(run) for run in runs]}
    return _HEAD + yaml.safe_dump(plain, sort_keys=False, width=100)
