"""A campaign can enumerate everything within a bound."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.campaign.campaign import run
from numaproof.campaign.journal import Journal
from numaproof.campaign.worker import UnitWorker
from numaproof.conformance.cases import loading
from numaproof.conformance.exhaustion.bounds import BOUNDS, Bound, LivesSize, MergesSize
from numaproof.conformance.exhaustion.setups import CPU_SETUPS
from numaproof.protocol.campaign import BoundSlice, Seeds
from numaproof.reports.campaign import as_text

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from numaproof.campaign.planning import CampaignSpec

TINY = Bound("tiny", 2, (MergesSize(1, 1, 1),), (LivesSize("CPU Manager", CPU_SETUPS[:1], 1, 1),))


def test_all_parts_are_played_and_a_cause_is_found_once(
    campaign_spec: CampaignSpec, one_by_one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BOUNDS, "small", TINY)
    (target, *_) = campaign_spec.targets
    spec = replace(
        campaign_spec, targets=(target,), selected_cases=(), seeds=Seeds(0, 0), bound="small"
    )
    covers = spec.plan.bound_covers
    assert covers[0] == "every assignment on machines of up to 2 CPUs"
    units = [unit for unit in spec.units() if isinstance(unit, BoundSlice)]
    assert [(unit.kind, unit.first, unit.count) for unit in units] == [
        *(("assignments", first, 4) for first in (0, 4, 8)),
        ("assignments", 12, 1),
        ("merges", 0, 4),
        ("merges", 4, 2),
        ("lives", 0, 1),
    ]
    folder = tmp_path / "out"
    (tmp_path / "work").mkdir()
    with (
        closing(UnitWorker(spec.job, tmp_path / "work")) as worker,
        Journal(folder, spec.plan, lambda: 1.5) as journal,
    ):
        list(run(journal, spec.units, one_by_one(worker)))
        summary = journal.finished_units.summary()
    assert summary.complete
    assert f"Bound: {'; '.join(covers)}\n" in as_text(summary)
    (finding,) = summary.findings
    assert finding.first == f"in part 0 of the merges, {target.kubernetes} {target.level}"
    assert finding.count == summary.tally.scenarios["fault"] == 6 * 7
    assert finding.file
    (case,) = loading.read_file(folder / finding.file)
    assert [step.verb for step in case.steps] == ["merge"]


def test_each_release_has_its_own_parts(campaign_spec: CampaignSpec) -> None:
    (target, *_) = campaign_spec.targets
    targets = tuple(replace(target, kubernetes=one) for one in ("1.30", "1.37"))
    both = replace(campaign_spec, targets=targets, bound="small")
    for one in targets:
        alone = replace(both, targets=(one,))
        units = [unit for unit in alone.units() if isinstance(unit, BoundSlice)]
        assert units == [
            unit
            for unit in both.units()
            if isinstance(unit, BoundSlice) and unit.configuration.kubernetes == one.kubernetes
        ]
