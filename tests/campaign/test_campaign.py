"""A campaign's result doesn't depend on the workers, the order of units, or repetitions."""

from __future__ import annotations

import dataclasses
import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof.campaign.campaign import run
from numaproof.campaign.journal import Journal, JournalError
from numaproof.campaign.worker import UnitWorker, WorkerMismatchError
from numaproof.protocol.campaign import CaseSlice, Seeds, SeedSlice, Shrink
from numaproof.reports.campaign import as_json, as_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Remembering
    from numaproof.campaign.planning import CampaignSpec, Job
    from numaproof.protocol.campaign import CampaignSummary, Unit

OneByOne = Any


def clock() -> float:
    return 1.5


def conduct(
    folder: Path, campaign_spec: CampaignSpec, worker: OneByOne, *, fresh: bool = False
) -> CampaignSummary:
    with Journal(folder, campaign_spec.plan, clock, fresh=fresh) as journal:
        for _ in run(journal, campaign_spec.units, worker):
            pass
        return journal.finished_units.summary()


def do_first(campaign_spec: CampaignSpec, job: Job, folder: Path) -> None:
    with closing(UnitWorker(job, folder)) as made:
        made.do(next(campaign_spec.units()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the journal of a campaign whose units run in the planned order."""
    return tmp_path_factory.mktemp("ordered")


@pytest.fixture(scope="module")
def campaign_summary(
    folder: Path, campaign_spec: CampaignSpec, worker: Remembering, one_by_one: OneByOne
) -> CampaignSummary:
    """Returns the result."""
    return conduct(folder, campaign_spec, one_by_one(worker))


def test_units_are_slices_of_cases_and_ranges_of_seeds(
    campaign_spec: CampaignSpec,
) -> None:
    units = list(campaign_spec.units())
    assert len(units) == len({unit.id for unit in units}) == campaign_spec.plan.units
    slices = [unit for unit in units if isinstance(unit, CaseSlice)]
    assert {unit.machine for unit in slices} == {"laptop-4c8t"}
    assert [len(unit.cases) for unit in slices] == [3, 3, 3, 3, 1, 1]
    assert campaign_spec.plan.runs == 14
    ranges = [unit for unit in units if isinstance(unit, SeedSlice)]
    assert [(unit.first, unit.count) for unit in ranges] == [(0, 5), (5, 5), (10, 2)] * 2


def test_outcomes_are_counted_and_equal_failures_are_one_finding(
    campaign_summary: CampaignSummary,
) -> None:
    assert campaign_summary.complete
    assert sum(campaign_summary.tally.cases.values()) == 14
    assert sum(campaign_summary.tally.scenarios.values()) == 24
    by_scenario = [one for one in campaign_summary.findings if one.subject == "scenario"]
    assert [one.message for one in by_scenario] == ["boom"]
    assert by_scenario[0].count == campaign_summary.tally.scenarios["fault"] > 2
    assert len(by_scenario[0].configurations) == 2
    by_case = [one for one in campaign_summary.findings if one.subject != "scenario"]
    assert sum(one.count for one in by_case) == campaign_summary.tally.cases.get("fault", 0)
    assert all(
        one.reproduce.startswith(f"numaproof replay {one.subject} --machine ") for one in by_case
    )


def test_a_findings_first_scenario_is_shrunk_to_a_case_file(
    campaign_summary: CampaignSummary, folder: Path
) -> None:
    (finding,) = (one for one in campaign_summary.findings if one.file)
    assert finding.file is not None
    assert (folder / finding.file).read_text().count("merge:") == 1
    assert finding.reproduce.startswith(f"numaproof replay {finding.file} --kubernetes 1.35")


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(lambda units: units[::-1], id="backwards"),
        pytest.param(lambda units: [*units[::2], *units[1::2], *units[:3]], id="some twice"),
    ],
)
def test_the_result_does_not_depend_on_the_order_of_units(
    order: Callable[[list[Unit]], list[Unit]],
    campaign_summary: CampaignSummary,
    campaign_spec: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    tmp_path: Path,
) -> None:
    other = conduct(tmp_path / "other", campaign_spec, one_by_one(worker, order))
    assert as_json(other) == as_json(campaign_summary)
    assert as_text(other) == as_text(campaign_summary)


def test_a_unit_that_cannot_run_is_retried_by_the_next_run(
    campaign_summary: CampaignSummary,
    campaign_spec: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    tmp_path: Path,
) -> None:
    def breaks(unit: Unit) -> bool:
        return isinstance(unit, SeedSlice) and unit.first == 5

    partly = conduct(tmp_path / "other", campaign_spec, one_by_one(worker, breaks=breaks))
    assert not partly.complete
    assert "INCOMPLETE: 3 units left" in as_text(partly)
    why = "2 units failed: 1.35 kubelet/seeds/5+5: no;"
    assert f"\n  {why}" in as_text(partly)
    assert json.loads(as_json(partly))["message"].startswith(why)
    last = json.loads((tmp_path / "other" / "events.jsonl").read_text().splitlines()[-1])
    assert last["message"].startswith("2 units failed: 1.35 kubelet/seeds/5+5: no;")

    done: list[str] = []

    def record_units(units: list[Unit]) -> list[Unit]:
        done.extend(unit.id for unit in units)
        return units

    whole = conduct(tmp_path / "other", campaign_spec, one_by_one(worker, record_units))
    assert len(done) == 3
    assert as_json(whole) == as_json(campaign_summary)


def test_a_file_of_another_campaign_is_refused(
    campaign_summary: CampaignSummary,
    campaign_spec: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    folder: Path,
    tmp_path: Path,
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    other = dataclasses.replace(campaign_spec, seeds=Seeds(0, 3))
    with pytest.raises(JournalError, match=r'seeds {"first":0,"stop":12} \(expected {"first":0'):
        conduct(tmp_path / "copy", other, one_by_one(worker))
    anew = conduct(tmp_path / "copy", other, one_by_one(worker), fresh=True)
    assert sum(anew.tally.scenarios.values()) == 6 < sum(campaign_summary.tally.scenarios.values())


def test_a_file_that_is_no_journal_is_not_touched(
    campaign_spec: CampaignSpec, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"nonsense\n" * 2)
    with pytest.raises(JournalError, match="line 1 is not the plan of a campaign"):
        Journal(tmp_path, campaign_spec.plan, clock)
    assert path.read_bytes() == b"nonsense\n" * 2


def test_a_second_campaign_cannot_write_to_the_same_file(
    campaign_spec: CampaignSpec, tmp_path: Path
) -> None:
    with (
        Journal(tmp_path, campaign_spec.plan, clock),
        pytest.raises(JournalError, match=r"events\.jsonl: another campaign is writing to it"),
    ):
        Journal(tmp_path, campaign_spec.plan, clock)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("numaproof", "9.9", r"\(expected 9.9, as in the campaign\)"),
        ("cases", "0" * 16, "case table differs"),
    ],
)
def test_a_worker_with_different_code_refuses_units(
    field: str, value: str, complaint: str, campaign_spec: CampaignSpec, tmp_path: Path
) -> None:
    job = dataclasses.replace(campaign_spec.job, **{field: value})
    with pytest.raises(WorkerMismatchError, match=complaint):
        do_first(campaign_spec, job, tmp_path)


def test_a_worker_with_another_program_stops_it_and_refuses_units(
    campaign_spec: CampaignSpec, tmp_path: Path
) -> None:
    hello = msgspec.structs.replace(campaign_spec.plan.implementation, name="another")
    job = dataclasses.replace(campaign_spec.job, hello=hello)
    with pytest.raises(WorkerMismatchError, match=r"implementation \(numaproof reference"):
        do_first(campaign_spec, job, tmp_path)


def test_a_failure_that_does_not_reproduce_has_no_case_file(
    campaign_spec: CampaignSpec, worker: Remembering
) -> None:
    configuration = campaign_spec.plan.configurations[0]
    passing = next(
        seed
        for seed in range(100)
        if worker.do(SeedSlice(configuration, seed, 1)).lines.count(b"\n") == 1
    )
    result = worker.do(Shrink(configuration, "0" * 12, passing))
    assert not result.files
    assert b'"unit finished"' in result.lines


def test_a_unit_leaves_no_files_behind(campaign_spec: CampaignSpec, tmp_path: Path) -> None:
    do_first(campaign_spec, campaign_spec.job, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("unit-")] == []
