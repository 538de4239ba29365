"""What the gauntlet tries against a bug: rehearsed scenarios, trees, the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.fuzzing.generation import trees
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.seeded_bugs import fuzz_hunt, hunting
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.fuzz_hunt import Fuzzing, seeds_from
from numaproof.conformance.seeded_bugs.hunting import Suite
from numaproof.conformance.seeded_bugs.table_hunt import TableHunt

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.seeded_bugs.seeding import Bug


def named(name: str) -> Bug:
    return next(bug for bug in BUGS if bug.id == name)


@pytest.fixture
def table(tmp_path: Path) -> TableHunt:
    """The cases of reconciling and of checkpoints, on one machine."""
    cases = [
        case for case in loading.bundled_cases() if case.id.startswith(("reconcile", "checkpoint"))
    ]
    machine = ProfileMachine(fakesys.load_profile("core-i7-9700"), tmp_path)
    return TableHunt(Suite(cases, [machine], load_registry()), tmp_path / "table")


def test_the_whole_table_finds_every_case_that_fails(table: TableHunt) -> None:
    caught = table.hunt(named("reconcile-tells-nobody"), whole=True)
    assert caught.runs == len(table.played())
    assert len(caught.cases) > 1
    assert all(case.startswith("reconcile") for case in caught.cases)


def test_the_first_case_that_fails_is_enough(table: TableHunt) -> None:
    caught = table.hunt(named("reconcile-tells-nobody"), whole=False)
    assert len(caught.cases) == 1
    assert caught.runs < len(table.played())


def test_a_bug_in_reading_checkpoints_is_found_though_files_are_changed_by_hand(
    table: TableHunt,
) -> None:
    caught = table.hunt(named("a-wrong-cpu-checksum-is-accepted"), whole=False)
    assert caught.cases


def test_what_no_case_shows_survives_the_table(table: TableHunt) -> None:
    caught = table.hunt(named("devices-are-given-twice"), whole=True)
    assert caught.cases == ()
    assert caught.runs >= len(table.played())


def test_a_bug_is_found_in_the_same_example_whatever_was_looked_for_before(tmp_path: Path) -> None:
    seeds = seeds_from(0, 30)
    bug = named("a-limit-makes-no-request")
    fresh = Fuzzing(tmp_path / "fresh").hunt(bug, seeds)
    used = Fuzzing(tmp_path / "used")
    used.hunt(named("init-cpus-are-not-reused"), seeds)
    assert used.hunt(bug, seeds).example == fresh.example
    assert fresh.example is not None
    assert fresh.examples == fresh.example.number


def test_a_bug_of_discovery_is_found_in_a_tree(tmp_path: Path) -> None:
    caught = Fuzzing(tmp_path).hunt(named("discovery-finds-no-distances"), seeds_from(0, 10))
    assert caught.example is not None
    assert caught.example.kind == "difference"


def test_scenarios_that_are_not_kept_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_hunt, "_BASELINES", 0)
    fuzzing, bug = Fuzzing(tmp_path), named("discovery-finds-no-distances")
    first = fuzzing.hunt(bug, seeds_from(0, 10))
    assert fuzzing.hunt(bug, seeds_from(0, 10)).example == first.example


def test_every_made_up_tree_is_a_machine_with_its_own_nodes(tmp_path: Path) -> None:
    for seed in range(30):
        profile = trees.profile(Seeded(seed), f"tree-{seed}")
        info = ProfileMachine(profile, tmp_path).info
        assert info is not None
        assert len(info.topology or ()) == len(profile.nodes)
        assert info.num_cores


def test_each_case_is_tried_on_one_machine_before_any_is_on_another(tmp_path: Path) -> None:
    names = ("laptop-4c8t", "core-i7-9700")
    machines = [ProfileMachine(fakesys.load_profile(name), tmp_path) for name in names]
    cases = [case for case in loading.bundled_cases() if case.id.startswith("reconcile")]
    target = hunting.target(named("reconcile-tells-nobody").implementation())
    firsts = list(hunting.firsts(cases, machines, target))
    others = list(hunting.others(cases, machines, target))
    assert len({run.case.id for run in firsts}) == len(firsts)
    assert len(firsts) + len(others) == len(list(hunting.in_turn(cases, machines, target)))
    assert {run.machine.name for run in others} == {names[1]}
