"""The quick set is up to date, catches every seeded bug, and is small."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run
from numaproof.conformance.selection import quick
from numaproof.conformance.selection.needs import of_case
from numaproof.reference.implementation import Reference
from quality import quick_set, suite
from quality.catalogue import BUGS, WHOLE_RUN
from quality.quick_set import Kills, Place

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol.messages import Level
    from quality.seeding import Bug

CASES = {case.id: case for case in loading.bundled_cases()}
RUNS = quick.bundled_runs()

FIX = "run `tox run -e quality -- quick-set --out conformance/quick.yaml`"


def test_every_case_and_machine_of_the_quick_set_exists() -> None:
    assert {run.case for run in RUNS} - CASES.keys() == set(), FIX
    assert {run.machine for run in RUNS} - set(fakesys.bundled_profiles()) == set(), FIX


def test_every_seeded_bug_is_caught_by_a_run_of_the_quick_set() -> None:
    caught = {bug for run in RUNS for bugs in run.catches.values() for bug in bugs}
    assert caught == {bug.id for bug in BUGS}, FIX


def test_the_quick_set_is_small_and_useful_at_every_level() -> None:
    assert len(RUNS) < 200
    at: dict[Level, set[str]] = {}
    for run in RUNS:
        for level, bugs in run.catches.items():
            at.setdefault(level, set()).update(bugs)
    assert len(at["invariants"]) >= 40
    assert len(at["admission"]) >= 150
    assert len(at["placement"]) >= 200


@pytest.fixture
def machines(tmp_path: Path) -> dict[str, ProfileMachine]:
    """The machines in the quick set."""
    names = sorted({run.machine for run in RUNS})
    return {name: ProfileMachine(fakesys.load_profile(name), tmp_path / "trees") for name in names}


def good(bug: Bug, selected_case: SelectedCase, release: str, level: Level, scratch: Path) -> bool:
    """Returns whether the reference with a bug passes a case, without an oracle."""
    target = replace(suite.target(bug.implementation()), kubernetes=release, level=level)
    return (
        Run(target, selected_case.case, selected_case.info, selected_case.machine.tree, scratch)
        .play()
        .good
    )


@pytest.mark.slow
def test_every_run_of_the_quick_set_catches_its_bugs(
    machines: dict[str, ProfileMachine], tmp_path: Path
) -> None:
    bugs = {bug.id: bug for bug in BUGS}
    missed = [
        (run.case, run.machine, level, name)
        for number, run in enumerate(RUNS)
        for level, names in run.catches.items()
        for name in names
        if good(
            bugs[name],
            runner.SelectedCase(CASES[run.case], machines[run.machine]),
            run.kubernetes,
            level,
            tmp_path / f"{number}-{level}-{name}",
        )
    ]
    assert missed == [], FIX


@pytest.mark.slow
@pytest.mark.parametrize("bug", WHOLE_RUN, ids=lambda bug: bug.id)
def test_the_quick_set_catches_mutants_of_the_invariants(
    bug: Bug, machines: dict[str, ProfileMachine], tmp_path: Path
) -> None:
    target = suite.target(InProcess(Reference))
    runs = quick.select(CASES.values(), tuple(machines.values()), target)
    ends = (
        good(bug, run, target.kubernetes, target.level, tmp_path / str(number))
        for number, run in enumerate(runs)
    )
    assert not all(ends)


def test_runs_that_do_not_apply_are_omitted(machines: dict[str, ProfileMachine]) -> None:
    target = suite.target(InProcess(Reference))
    every = quick.select(CASES.values(), tuple(machines.values()), target)
    lower = replace(target, level="admission")
    fewer = quick.select(CASES.values(), tuple(machines.values()), lower)
    bundled = [run for run in every if run.case.id in {one.case for one in RUNS}]
    assert 0 < len(fewer) <= len(every)
    assert len(bundled) <= len(RUNS)
    assert {run.case.level for run in fewer if not run.only_invariants} == {
        "invariants",
        "admission",
    }
    one = quick.select(CASES.values(), (machines["laptop-4c8t"],), target)
    assert {run.machine.name for run in one} == {"laptop-4c8t"}


def test_claims_that_no_seeded_bug_needs_have_a_run_for_each_requirement(tmp_path: Path) -> None:
    every = [ProfileMachine(fakesys.load_profile(n), tmp_path) for n in fakesys.bundled_profiles()]
    runs = quick.select(CASES.values(), every, suite.target(InProcess(Reference)))
    shown = {row for run in runs for row in run.case.requirements}
    whole = ("feature node-allocatable", "feature static-pods", "operation resize")
    for case in CASES.values():
        if not set(whole).isdisjoint(of_case(case.id) or ()):
            assert shown.issuperset(case.requirements), case.id
    assert len(runs) < len(RUNS) + 50


def test_replacement_runs_only_use_small_machines(
    tmp_path: Path,
) -> None:
    every = [ProfileMachine(fakesys.load_profile(n), tmp_path) for n in fakesys.bundled_profiles()]
    target = suite.target(InProcess(Reference))
    hello = structs.replace(target.hello, operations=("start", "admit", "remove", "state"))
    target = replace(target, hello=hello, command=("driver",))
    runs = quick.select(CASES.values(), every, target)
    kept = {run.machine for run in RUNS} & {run.machine.name for run in runs}
    large = [one for one in every if one.cpus >= 256 and one.name not in kept]
    assert {run.machine.name for run in runs} - kept
    assert [one.name for one in large if "info" in vars(one)] == []


def kills(**cases: tuple[Level, ...]) -> Kills:
    return {Place(case, "laptop", "1.36"): levels for case, levels in cases.items()}


def test_the_cover_takes_the_run_that_catches_the_most() -> None:
    found = {
        "a": kills(one=("kubelet",), both=("kubelet",)),
        "b": kills(both=("kubelet",), same=("kubelet",)),
        "c": kills(other=("kubelet",)),
    }
    assert [run.case for run in quick_set.cover(found)] == ["both", "other"]


def test_the_cover_reuses_runs_of_lower_levels() -> None:
    found = {
        "a": kills(low=("admission", "kubelet"), high=("kubelet",)),
        "b": kills(high=("kubelet",), low=("kubelet",)),
    }
    (run,) = quick_set.cover(found)
    assert run.case == "low"
    assert run.catches == {"admission": ("a",), "kubelet": ("a", "b")}


def test_the_file_round_trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / quick.FILE
    written.write_text(quick_set.text(RUNS), encoding="utf-8")
    monkeypatch.setattr(quick.resources, "files", lambda _: tmp_path)
    assert quick.bundled_runs() == RUNS
