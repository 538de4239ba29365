"""The whole gauntlet: every bug against the table and against fuzzing, over some processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.parallel import ProcessWorker, spread
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.fuzz_hunt import Fuzzing, seeds_from
from numaproof.conformance.seeded_bugs.hunting import MACHINES, Suite
from numaproof.conformance.seeded_bugs.table_hunt import TableHunt
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol.kill_matrix import Hunt, Matrix, Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.seeded_bugs.seeding import Bug

QUICK_EXAMPLES = 100
"""Scenarios that it has in the quick form."""

QUICK_SAMPLE = 12
"""Bugs that are fuzzed for in the quick form."""


@dataclass(frozen=True)
class Plan:
    """What is tried against which bugs.

    Attributes:
        bugs: the ids of the bugs.
        table: whether the table is played.
        fuzzed: the ids of the bugs that are fuzzed for.
        whole: whether every case is played, and not only until one catches the bug.
        examples: scenarios for a bug at the most.
        seed: where the scenarios come from.
    """

    bugs: tuple[str, ...]
    table: bool
    fuzzed: frozenset[str]
    whole: bool
    examples: int
    seed: int

    @staticmethod
    def of(bugs: Sequence[str], *, table: bool, fuzz: bool, examples: int, seed: int) -> Plan:
        """Everything against all of the bugs."""
        return Plan(tuple(bugs), table, frozenset(bugs if fuzz else ()), table, examples, seed)

    @staticmethod
    def quick(bugs: Sequence[str], *, table: bool, fuzz: bool, examples: int, seed: int) -> Plan:
        """The table until a case catches a bug; fuzzing for a few that the seed chooses."""
        sample = Seeded(seed).some(bugs, QUICK_SAMPLE, QUICK_SAMPLE) if fuzz else []
        fewer = min(examples, QUICK_EXAMPLES)
        return Plan(tuple(bugs), table, frozenset(sample), whole=False, examples=fewer, seed=seed)


Row = tuple[Hunt, Seconds]
"""A bug's part of the matrix, and the times, which are another each time."""


class Hunter:
    """Looks for one bug after the other.

    What healthy references answer is kept from one bug to the next.

    Args:
        plan: what is tried.
        scratch: an empty place for trees and state directories.
    """

    def __init__(self, plan: Plan, scratch: Path) -> None:
        self._plan = plan
        self._table = TableHunt(bundled_suite(scratch), scratch / "table") if plan.table else None
        self._fuzzing = Fuzzing(scratch / "fuzz")
        self._seeds = seeds_from(plan.seed, plan.examples)

    def played(self) -> tuple[str, ...]:
        """The ids of the cases that are played against every bug."""
        return self._table.played() if self._table and self._plan.whole else ()

    def row(self, bug: Bug) -> Row:
        """What caught a bug, and how long that took."""
        hunt = Hunt(bug.id, bug.subject, bug.models)
        table = fuzz = shrinking = 0.0
        if self._table is not None:
            told = self._table.hunt(bug, whole=self._plan.whole)
            table = told.seconds
            hunt = replace(hunt, runs=told.runs, cases=told.cases, invariants=told.invariants)
        if bug.id in self._plan.fuzzed:
            caught = self._fuzzing.hunt(bug, self._seeds)
            fuzz, shrinking = caught.seconds, caught.shrinking
            hunt = replace(hunt, examples=caught.examples, example=caught.example)
        return hunt, Seconds(round(table, 3), round(fuzz, 3), round(shrinking, 3))


def bundled_suite(folder: Path) -> Suite:
    """All cases, and all machines, the quick ones first."""
    others = [name for name in fakesys.bundled_profiles() if name not in MACHINES]
    machines = [ProfileMachine(fakesys.load_profile(name), folder) for name in (*MACHINES, *others)]
    return Suite(loading.bundled_cases(), machines, load_registry())


def rows(plan: Plan, jobs: int) -> Iterator[Row]:
    """The row of each bug, as they come, made by so many processes."""
    bugs = [bug for bug in BUGS if bug.id in plan.bugs]
    with scratch_folder() as scratch:
        if jobs == 1:
            yield from map(Hunter(plan, scratch).row, bugs)
            return
        hunters = [
            ProcessWorker(_hunter, plan, scratch / str(number))
            for number in range(min(jobs, len(bugs)))
        ]
        yield from spread([bug.id for bug in bugs], hunters)


def _hunter(plan: Plan, scratch: Path) -> Callable[[str], Row]:
    """Makes the function that hunts the bug of an id, in a process of its own."""
    hunter = Hunter(plan, scratch)
    return lambda name: hunter.row(next(bug for bug in BUGS if bug.id == name))


def matrix(plan: Plan, rows: Iterable[Row], version: str, *, complete: bool = True) -> Matrix:
    """The matrix that rows make, in the order of the catalogue, whatever order they came in."""
    place = {bug.id: number for number, bug in enumerate(BUGS)}
    ordered = sorted(rows, key=lambda row: place[row[0].bug])
    played: tuple[str, ...] = ()
    if plan.whole:
        with scratch_folder() as scratch:
            played = Hunter(plan, scratch).played()
    return Matrix(
        numaproof=version,
        seed=plan.seed,
        examples=plan.examples,
        whole=plan.whole,
        cases=played,
        hunts=tuple(hunt for hunt, _ in ordered),
        seconds={hunt.bug: seconds for hunt, seconds in ordered},
        complete=complete,
    )
