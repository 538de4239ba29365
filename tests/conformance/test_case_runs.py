"""Case runs in parallel processes give the same events in the same order."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from builders.targets import case_of
from numaproof import fakesys
from numaproof.conformance import check as checking
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.check import CaseRuns, CheckOptions, check
from numaproof.conformance.differential import recordings
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import reference_target
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.conformance.judging.baselines import KUBELET
from numaproof.conformance.requirements import Registry, load_registry
from numaproof.protocol.events import RunEnded
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.events import CaseFinished


@pytest.fixture
def runs(tmp_path: Path) -> list[SelectedCase]:
    """A hundred runs on two machines, with and without trees."""
    names = ("laptop-4c8t", "core-i7-1270p")
    machines = [ProfileMachine(fakesys.load_profile(name), tmp_path) for name in names]
    target = reference_target(NEWEST, KUBELET)
    return runner.select(loading.bundled_cases(), machines, target)[:100]


def harness_run() -> HarnessRun:
    registry = Registry(documents={}, requirements=())
    return HarnessRun(reference_target(NEWEST, KUBELET), registry, "numaproof check", "0.1")


def without_times(case_run: CaseFinished) -> CaseFinished:
    return msgspec.structs.replace(case_run, at=0.0, seconds=0.0)


def test_only_a_whole_run_reports_untestable_claims(
    runs: list[SelectedCase],
) -> None:
    run = replace(harness_run(), registry=load_registry())
    for whole in (False, True):
        *_, ended = check(runs[:1], run, options=CheckOptions(whole=whole))
        assert isinstance(ended, RunEnded)
        assert bool(ended.untested_requirements) == whole


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs even a few cases in parallel."""
    monkeypatch.setattr(checking, "FEW", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_several_processes_give_the_same_events_as_one(
    runs: list[SelectedCase], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    every = (*runs, *recordings.bundled_recordings(NEWEST)[:3])
    found = []
    for place in ("here", "spread"):
        made = CaseRuns(every, harness_run(), every_call=True, times=1)
        found.append([without_times(one) for one in made.play(tmp_path / place)])
        # Other processes remove their own files.
        assert bool([*(tmp_path / place).glob("*")]) == (place == "here")
        request.getfixturevalue("two_cores")
    assert len(found[0]) == 103
    assert found[0] == found[1]


@pytest.mark.usefixtures("two_cores")
def test_events_before_a_broken_case_are_delivered(
    runs: list[SelectedCase], tmp_path: Path
) -> None:
    wrong = SelectedCase(case_of("steps: [{admit: nobody}]"), runs[0].machine)
    made = CaseRuns([*runs[:50], wrong, *runs[50:]], harness_run(), every_call=False, times=1)
    finished = made.play(tmp_path)
    assert [next(finished).case for _ in range(50)] == [one.case.id for one in runs[:50]]
    with pytest.raises(
        CaseError, match="case test, step 1: no earlier step describes the pod nobody"
    ) as caught:
        next(finished)
    assert (caught.value.case, caught.value.step) == ("test", 1)


@pytest.mark.usefixtures("two_cores")
def test_leaving_early_leaves_no_process(runs: list[SelectedCase], tmp_path: Path) -> None:
    # Enough runs that neither process has finished its share when the first result arrives.
    made = CaseRuns(runs * 20, harness_run(), every_call=False, times=1)
    with closing(made.play(tmp_path)) as finished:
        assert next(finished).case == runs[0].case.id
        assert len(multiprocessing.active_children()) == 2
    assert not multiprocessing.active_children()
