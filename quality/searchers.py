"""The search functions for each kind of fault, created once in each process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.exhaustion.bounds import BOUNDS
from numaproof.conformance.exhaustion.kinds import LIVES
from numaproof.conformance.exhaustion.search import Search
from numaproof.conformance.requirements import load_registry
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.releases import release
from quality.catalogue import BUGS, REQUIREMENT_MUTANTS, WHOLE_RUN
from quality.rule_mutants import mutants
from quality.search import Catch, SearchResult, search
from quality.suite import bundled_suite, target
from quality.trials import CaseTrials, CitingTrials, NodeScenarioTrials, ScenarioTrials, seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from quality.seeding import Bug

    Searcher = Callable[[str], SearchResult]


def by_cases(scratch: Path, *, whole: bool) -> Searcher:
    """Searches for a seeded bug with the cases, or with every case if `whole`."""
    trials = CaseTrials(bundled_suite(scratch), scratch / "runs")
    bugs = {bug.id: bug for bug in BUGS}

    def searcher(name: str) -> SearchResult:
        bug = bugs[name]
        least = len(trials.firsts(bug.kubernetes or RELEASES[-1])) if whole else 0
        return search(name, trials.of(bug, in_order=whole), least)

    return searcher


def by_scenarios(scratch: Path, *, seed: int, examples: int) -> Searcher:
    """Searches for a seeded bug with generated scenarios."""
    trials = ScenarioTrials(seeds(seed, examples), scratch)
    bugs = {bug.id: bug for bug in BUGS}
    return lambda name: search(name, trials.of(bugs[name]))


def by_node_scenarios(scratch: Path, *, seed: int, examples: int) -> Searcher:
    """Searches for a bug in the whole process with generated scenarios."""
    trials = NodeScenarioTrials(seeds(seed, examples), scratch)
    bugs = {bug.id: bug for bug in WHOLE_RUN}
    return lambda name: search(name, trials.of(bugs[name]))


def by_lives(_: Path) -> Searcher:
    """Searches for a seeded bug with every life within the small bound."""
    bugs = {bug.id: bug for bug in BUGS}

    def searcher(name: str) -> SearchResult:
        bug = bugs[name]
        faulty = target(bug.implementation(), bug.kubernetes, with_oracle=True)
        lives = Search(faulty)
        for part in BOUNDS["small"].parts(LIVES, release(faulty.kubernetes, follows_docs=True)):
            for failure in lives.failures(part):
                catch = Catch("life", "", faulty.kubernetes, (failure.failure_kind,))
                return SearchResult(name, lives.outcomes.total(), (catch,))
        return SearchResult(name, lives.outcomes.total())

    return searcher


def by_citing(scratch: Path) -> Searcher:
    """Searches for a requirement mutant with the cases that cite its requirement."""
    trials = CitingTrials(bundled_suite(scratch), scratch / "runs")
    found = requirement_mutants()
    return lambda name: search(name, trials.of(found[name], name.partition(" ")[0]))


def by_rule(scratch: Path) -> Searcher:
    """Searches for a derived mutant with the cases that cite its rule's requirements."""
    trials = CitingTrials(bundled_suite(scratch), scratch / "runs")
    found = {one.id: one for one in mutants()}
    return lambda name: search(name, trials.of(found[name]))


def requirement_mutants() -> dict[str, Bug]:
    """Returns the bugs that break each tested requirement, by the ids of both."""
    return {
        f"{row.id} {bug.id}": bug
        for row in load_registry().requirements
        if row.is_tested
        for bug in (*REQUIREMENT_MUTANTS, *BUGS)
        if row.id in bug.models
    }
