"""The search for runs that catch a faulty reference: its loop and its four sources of runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as with_fields

from builders.pods import numbered_pod
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.judging import pods
from numaproof.conformance.judging.pods import PodResources
from numaproof.conformance.requirements import load_registry
from numaproof.reference.pods.manifest import read_pod
from quality.catalogue import BUGS, WHOLE_RUN
from quality.search import Catch, search
from quality.seeding import Bug
from quality.suite import Suite
from quality.trials import CaseTrials, CitingTrials, NodeScenarioTrials, ScenarioTrials, seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.protocol.messages import Level

CATCH = Catch("case", "machine", "1.37")
HEALTHY = Bug("none", "cpus", (), lambda _: None)
RECONCILE = "CPU-RECONCILE-001"


def find_bug(name: str) -> Bug:
    return next(bug for bug in (*BUGS, *WHOLE_RUN) if bug.id == name)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Cases about reconciling and some about checkpoints, on one machine."""
    chosen = ("reconcile", "checkpoint-wrong")
    cases = [case for case in loading.bundled_cases() if case.id.startswith(chosen)]
    machine = ProfileMachine(fakesys.load_profile("core-i7-9700"), tmp_path / "trees")
    return Suite(cases, [machine], load_registry())


# The loop


def trials(*ends: bool) -> list[Callable[[], Catch | None]]:
    return [lambda end=end: CATCH if end else None for end in ends]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("least", "most", "runs", "catches"),
    [(0, 9, 2, 1), (4, 9, 4, 2), (3, 9, 3, 1), (0, 1, 1, 0)],
)
def test_the_search_ends_at_the_first_catch_after_the_minimum(
    least: int, most: int, runs: int, catches: int
) -> None:
    found = search("bug", trials(False, True, False, True), least, most)
    assert (found.runs, len(found.catches), found.has_survived) == (runs, catches, not catches)


# Cases


def test_every_failing_case_is_found(suite: Suite, tmp_path: Path) -> None:
    source = CaseTrials(suite, tmp_path / "runs")
    bug = find_bug("reconcile-tells-nobody")
    least = len(source.firsts("1.37"))
    found = search(bug.id, source.of(bug, in_order=True), least)
    assert found.runs == least
    assert len(found.catches) > 1
    assert all(one.run.startswith("reconcile") for one in found.catches)
    assert "placement" in source.levels(bug, found.catches[0])


def test_the_cases_nearest_to_a_bug_come_first(suite: Suite, tmp_path: Path) -> None:
    source = CaseTrials(suite, tmp_path / "runs")
    bug = find_bug("reconcile-tells-nobody")
    assert search(bug.id, source.of(bug)).runs < len(source.played_case_ids()) / 2
    far = replace(bug, models=(), subject="restart")
    assert source.near(far) < len(source.played_case_ids())
    assert search(far.id, source.of(far)).catches


def test_bugs_are_found_in_cases_that_change_files(suite: Suite, tmp_path: Path) -> None:
    bug = find_bug("a-wrong-cpu-checksum-is-accepted")
    assert search(bug.id, CaseTrials(suite, tmp_path / "runs").of(bug)).catches


def test_a_bug_that_no_case_shows_survives(suite: Suite, tmp_path: Path) -> None:
    source = CaseTrials(suite, tmp_path / "runs")
    for bug in (find_bug("devices-are-given-twice"), HEALTHY):
        assert search(bug.id, source.of(bug)).has_survived


# Scenarios


def test_the_search_does_not_depend_on_earlier_searches(tmp_path: Path) -> None:
    bug = find_bug("a-limit-makes-no-request")
    fresh = search(bug.id, ScenarioTrials(seeds(0, 30), tmp_path / "fresh").of(bug))
    used = ScenarioTrials(seeds(0, 30), tmp_path / "used")
    search("other", used.of(find_bug("init-cpus-are-not-reused")))
    assert search(bug.id, used.of(bug)) == fresh
    assert fresh.catches


def test_a_bug_of_discovery_is_found_in_a_tree(tmp_path: Path) -> None:
    bug = find_bug("discovery-finds-no-distances")
    (catch,) = search(bug.id, ScenarioTrials(seeds(0, 10), tmp_path).of(bug)).catches
    assert catch.run.startswith("tree ")
    assert catch.broke == ("difference",)


# Scenarios judged by invariants alone


@pytest.mark.parametrize(
    "name",
    [
        "parts-of-cpus-are-rounded-up-to-exclusive-ones",
        "burstable-pods-are-guaranteed",
        "init-containers-do-not-count-for-the-effective-request",
    ],
)
def test_invariants_alone_catch_a_bug_in_the_whole_process(name: str, tmp_path: Path) -> None:
    bug = find_bug(name)
    (catch,) = search(name, NodeScenarioTrials(seeds(0, 400), tmp_path).of(bug)).catches
    # The bug is caught for its effects on the node, not on the harness.
    counts = {"exclusive-count", "memory-of-guaranteed-only"}
    assert {*catch.broke} <= counts or "effective" in name


def test_a_healthy_run_breaks_no_invariant(tmp_path: Path) -> None:
    assert search("none", NodeScenarioTrials(seeds(0, 15), tmp_path).of(HEALTHY)).has_survived


def test_the_invariants_read_pods_independently() -> None:
    manifest = numbered_pod("a", [{"limits": {"cpu": "2"}}])
    with find_bug("burstable-pods-are-guaranteed").inject():
        assert read_pod(manifest).qos == "Guaranteed"
        assert pods.read(manifest, PodResources()).qos == "Burstable"
    assert read_pod(manifest).qos == "Burstable"


# Cases that cite a requirement


def at_level(suite: Suite, level: Level) -> Suite:
    rows = tuple(with_fields(row, level=level) for row in suite.registry.requirements)
    return replace(suite, registry=with_fields(suite.registry, requirements=rows))


def test_a_citing_case_catches_a_requirement_mutant(suite: Suite, tmp_path: Path) -> None:
    bug = find_bug("reconcile-tells-nobody")
    (catch,) = search(bug.id, CitingTrials(suite, tmp_path / "runs").of(bug, RECONCILE)).catches
    case = next(case for case in suite.cases if case.id == catch.run)
    assert RECONCILE in case.requirements
    assert (catch.machine, catch.broke) == ("core-i7-9700", ("fail",))


def test_cases_of_other_requirements_do_not_count(suite: Suite, tmp_path: Path) -> None:
    bug = find_bug("reconcile-tells-nobody")
    others = [case for case in suite.cases if RECONCILE not in case.requirements]
    fewer = replace(suite, cases=others)
    found = search(bug.id, CitingTrials(fewer, tmp_path / "runs").of(bug, RECONCILE))
    assert (found.has_survived, found.runs) == (True, 0)


@pytest.mark.parametrize(
    ("name", "has_survived"),
    [("reconcile-tells-nobody", True), ("exclusive-cpus-stay-in-the-shared-pool", False)],
)
def test_cases_above_the_level_are_judged_by_the_invariants(
    suite: Suite, tmp_path: Path, name: str, *, has_survived: bool
) -> None:
    low, bug = at_level(suite, "invariants"), find_bug(name)
    found = search(bug.id, CitingTrials(low, tmp_path / "runs").of(bug, RECONCILE))
    assert found.has_survived is has_survived


@pytest.mark.parametrize(("level", "has_survived"), [("invariants", True), ("placement", False)])
def test_a_mutant_can_name_the_level_at_which_it_must_be_caught(
    suite: Suite, tmp_path: Path, level: Level, *, has_survived: bool
) -> None:
    bug = replace(find_bug("reconcile-tells-nobody"), level=level)
    found = search(bug.id, CitingTrials(suite, tmp_path / "runs").of(bug, RECONCILE))
    assert found.has_survived is has_survived


def test_a_requirement_mutant_that_raises_is_an_error(suite: Suite, tmp_path: Path) -> None:
    def raise_error(*_: object) -> None:
        raise ZeroDivisionError

    bug = Bug("divides-by-zero", "cpus", (RECONCILE,), raise_error)
    with pytest.raises(ZeroDivisionError):
        search(bug.id, CitingTrials(suite, tmp_path / "runs").of(bug))
