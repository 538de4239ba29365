"""The hunters: what hunts a fault of some kind, made once in each process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.requirements import load_registry
from numaproof.protocol.releases import RELEASES
from quality.catalogue import BUGS, VIOLATORS, WHOLE_RUN
from quality.derived import mutants
from quality.hunting import Hunt, hunt
from quality.suite import bundled_suite
from quality.trials import CaseTrials, CitingTrials, LifeTrials, ScenarioTrials, seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from quality.seeding import Bug

    Hunter = Callable[[str], Hunt]


def by_cases(scratch: Path, *, whole: bool) -> Hunter:
    """Makes what hunts a seeded bug with the cases: with every one of them if `whole`."""
    trials = CaseTrials(bundled_suite(scratch), scratch / "runs")
    bugs = {bug.id: bug for bug in BUGS}

    def hunter(name: str) -> Hunt:
        bug = bugs[name]
        least = len(trials.firsts(bug.kubernetes or RELEASES[-1])) if whole else 0
        return hunt(name, trials.of(bug, in_order=whole), least)

    return hunter


def by_scenarios(scratch: Path, *, seed: int, examples: int) -> Hunter:
    """Makes what hunts a seeded bug with generated scenarios."""
    trials = ScenarioTrials(seeds(seed, examples), scratch)
    bugs = {bug.id: bug for bug in BUGS}
    return lambda name: hunt(name, trials.of(bugs[name]))


def by_lives(scratch: Path, *, seed: int, examples: int) -> Hunter:
    """Makes what hunts a bug of the whole process with generated scenarios."""
    trials = LifeTrials(seeds(seed, examples), scratch)
    bugs = {bug.id: bug for bug in WHOLE_RUN}
    return lambda name: hunt(name, trials.of(bugs[name]))


def by_citing(scratch: Path) -> Hunter:
    """Makes what hunts a violator with the cases that cite its requirement."""
    trials = CitingTrials(bundled_suite(scratch), scratch / "runs")
    found = violators()
    return lambda name: hunt(name, trials.of(found[name], name.partition(" ")[0]))


def by_rule(scratch: Path) -> Hunter:
    """Makes what hunts a derived mutant with the cases that cite what its rule names."""
    trials = CitingTrials(bundled_suite(scratch), scratch / "runs")
    found = {one.id: one for one in mutants()}
    return lambda name: hunt(name, trials.of(found[name]))


def violators() -> dict[str, Bug]:
    """Every tested requirement with each bug that breaks it, by the names of both."""
    return {
        f"{row.id} {bug.id}": bug
        for row in load_registry().requirements
        if row.tested
        for bug in (*VIOLATORS, *BUGS)
        if row.id in bug.models
    }
