"""A campaign comes to the same whoever does its units, in which order, and however often."""

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


def conducted(
    folder: Path, planned: CampaignSpec, worker: OneByOne, *, fresh: bool = False
) -> CampaignSummary:
    with Journal(folder, planned.plan, clock, fresh=fresh) as journal:
        for _ in run(journal, planned.units, worker):
            pass
        return journal.finished.summary()


def do_first(planned: CampaignSpec, job: Job, folder: Path) -> None:
    with closing(UnitWorker(job, folder)) as made:
        made.do(next(planned.units()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a campaign whose units are done in the order of the plan."""
    return tmp_path_factory.mktemp("ordered")


@pytest.fixture(scope="module")
def ordered(
    folder: Path, planned: CampaignSpec, worker: Remembering, one_by_one: OneByOne
) -> CampaignSummary:
    """What it comes to."""
    return conducted(folder, planned, one_by_one(worker))


def test_units_are_slices_of_cases_by_machine_and_ranges_of_seeds_of_each_release(
    planned: CampaignSpec,
) -> None:
    units = list(planned.units())
    assert len(units) == len({unit.id for unit in units}) == planned.plan.units
    slices = [unit for unit in units if isinstance(unit, CaseSlice)]
    assert {unit.machine for unit in slices} == {"laptop-4c8t"}
    assert [len(unit.cases) for unit in slices] == [3, 3, 3, 3, 1, 1]
    assert planned.plan.runs == 14
    ranges = [unit for unit in units if isinstance(unit, SeedSlice)]
    assert [(unit.first, unit.count) for unit in ranges] == [(0, 5), (5, 5), (10, 2)] * 2


def test_all_outcomes_are_counted_and_what_fails_alike_is_one_finding(
    ordered: CampaignSummary,
) -> None:
    assert ordered.complete
    assert sum(ordered.tally.cases.values()) == 14
    assert sum(ordered.tally.scenarios.values()) == 24
    by_scenario = [one for one in ordered.findings if one.subject == "scenario"]
    assert [one.message for one in by_scenario] == ["boom"]
    assert by_scenario[0].count == ordered.tally.scenarios["fault"] > 2
    assert len(by_scenario[0].configurations) == 2
    by_case = [one for one in ordered.findings if one.subject != "scenario"]
    assert sum(one.count for one in by_case) == ordered.tally.cases.get("fault", 0)
    assert all(
        one.reproduce.startswith(f"numaproof replay {one.subject} --machine ") for one in by_case
    )


def test_the_first_scenario_of_a_finding_is_shrunk_to_a_case_file(
    ordered: CampaignSummary, folder: Path
) -> None:
    (finding,) = (one for one in ordered.findings if one.file)
    assert finding.file is not None
    assert (folder / finding.file).read_text().count("remove:") == 1
    assert finding.reproduce.startswith(f"numaproof replay {finding.file} --kubernetes 1.35")


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(lambda units: units[::-1], id="backwards"),
        pytest.param(lambda units: [*units[::2], *units[1::2], *units[:3]], id="some twice"),
    ],
)
def test_the_order_of_arrival_does_not_show(
    order: Callable[[list[Unit]], list[Unit]],
    ordered: CampaignSummary,
    planned: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    tmp_path: Path,
) -> None:
    other = conducted(tmp_path / "other", planned, one_by_one(worker, order))
    assert as_json(other) == as_json(ordered)
    assert as_text(other) == as_text(ordered)


def test_a_unit_that_cant_be_done_is_tried_again_next_time(
    ordered: CampaignSummary,
    planned: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    tmp_path: Path,
) -> None:
    def breaks(unit: Unit) -> bool:
        return isinstance(unit, SeedSlice) and unit.first == 5

    partly = conducted(tmp_path / "other", planned, one_by_one(worker, breaks=breaks))
    assert not partly.complete
    assert "INCOMPLETE: 3 units left" in as_text(partly)
    why = "2 units could not be done: 1.35 kubelet/seeds/5+5: no;"
    assert f"\n  {why}" in as_text(partly)
    assert json.loads(as_json(partly))["message"].startswith(why)
    last = json.loads((tmp_path / "other" / "events.jsonl").read_text().splitlines()[-1])
    assert last["message"].startswith("2 units could not be done: 1.35 kubelet/seeds/5+5: no;")

    done: list[str] = []

    def noted(units: list[Unit]) -> list[Unit]:
        done.extend(unit.id for unit in units)
        return units

    whole = conducted(tmp_path / "other", planned, one_by_one(worker, noted))
    assert len(done) == 3
    assert as_json(whole) == as_json(ordered)


def test_a_campaign_is_not_mixed_with_another(
    ordered: CampaignSummary,
    planned: CampaignSpec,
    worker: Remembering,
    one_by_one: OneByOne,
    folder: Path,
    tmp_path: Path,
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    other = dataclasses.replace(planned, seeds=Seeds(0, 3))
    with pytest.raises(JournalError, match=r'its seeds: {"first":0,"stop":12}, now: {"first":0'):
        conducted(tmp_path / "copy", other, one_by_one(worker))
    anew = conducted(tmp_path / "copy", other, one_by_one(worker), fresh=True)
    assert sum(anew.tally.scenarios.values()) == 6 < sum(ordered.tally.scenarios.values())


def test_a_file_that_is_not_of_a_campaign_is_left_alone(
    planned: CampaignSpec, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"nonsense\n" * 2)
    with pytest.raises(JournalError, match="line 1 is not the plan of a campaign"):
        Journal(tmp_path, planned.plan, clock)
    assert path.read_bytes() == b"nonsense\n" * 2


def test_two_campaigns_do_not_write_to_one_file(planned: CampaignSpec, tmp_path: Path) -> None:
    with (
        Journal(tmp_path, planned.plan, clock),
        pytest.raises(JournalError, match=r"events\.jsonl: another campaign is writing to it"),
    ):
        Journal(tmp_path, planned.plan, clock)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("numaproof", "9.9", "the campaign is of 9.9"),
        ("cases", "0" * 16, "another table of cases"),
    ],
)
def test_a_worker_with_something_else_does_nothing(
    field: str, value: str, complaint: str, planned: CampaignSpec, tmp_path: Path
) -> None:
    job = dataclasses.replace(planned.job, **{field: value})
    with pytest.raises(WorkerMismatchError, match=complaint):
        do_first(planned, job, tmp_path)


def test_a_worker_with_another_program_ends_it_and_does_nothing(
    planned: CampaignSpec, tmp_path: Path
) -> None:
    hello = msgspec.structs.replace(planned.plan.implementation, name="another")
    job = dataclasses.replace(planned.job, hello=hello)
    with pytest.raises(WorkerMismatchError, match="calls itself numaproof reference"):
        do_first(planned, job, tmp_path)


def test_a_failure_that_stays_away_when_made_again_has_no_case_file(
    planned: CampaignSpec, worker: Remembering
) -> None:
    configuration = planned.plan.configurations[0]
    passing = next(
        seed
        for seed in range(100)
        if worker.do(SeedSlice(configuration, seed, 1)).lines.count(b"\n") == 1
    )
    result = worker.do(Shrink(configuration, "0" * 12, passing))
    assert not result.files
    assert b'"unit finished"' in result.lines


def test_nothing_is_left_of_a_unit(planned: CampaignSpec, tmp_path: Path) -> None:
    do_first(planned, planned.job, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("unit-")] == []
