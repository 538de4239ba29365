"""Damage in a journal is detected, reported and repaired, and damaged units are never counted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.campaign.campaign import run
from numaproof.campaign.journal import Journal, JournalError
from numaproof.reports.campaign import as_json

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.campaign.planning import CampaignSpec

FLIPS = 150
"""The number of damaged files; set it higher when running by hand."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a campaign."""
    return tmp_path / "events.jsonl"


@pytest.fixture
def resume(campaign_spec: CampaignSpec, worker: Any, one_by_one: Any, tmp_path: Path) -> Any:
    """Runs or resumes the campaign; returns summary, damage and number of finished units."""

    def do() -> tuple[str, list[str], int]:
        with Journal(tmp_path, campaign_spec.plan, lambda: 1.5) as journal:
            before = len(journal.finished_units.done_units)
            for _ in run(journal, campaign_spec.units, one_by_one(worker)):
                pass
            return as_json(journal.finished_units.summary()), journal.damage_notes, before

    return do


def test_a_flipped_bit_never_changes_the_summary_silently(resume: Any, path: Path) -> None:
    whole, _, _ = resume()
    content = path.read_bytes()
    dice = random.Random(0)  # noqa: S311 - a seed for a test
    silent = []
    for _ in range(FLIPS):
        bit = dice.randrange(8 * len(content))
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            summary, _, _ = resume()
        except JournalError:
            continue
        if summary != whole:
            silent.append(bit)
    assert not silent


def test_a_damaged_unit_is_reported_removed_and_repeated(resume: Any, path: Path) -> None:
    whole, _, _ = resume()
    lines = path.read_bytes().splitlines(keepends=True)
    (number,) = (at for at, line in enumerate(lines, 1) if b"1.35 kubelet/seeds/5+5" in line)
    lines[number - 1] = lines[number - 1].replace(b'"seconds":', b'"seconds":1', 1)
    path.write_bytes(b"".join(lines))

    summary, damaged, _ = resume()
    assert summary == whole
    assert damaged[0].endswith("damaged: 1.35 kubelet/seeds/5+5")
    assert f"{number} " in damaged[0]
    assert resume()[:2] == (whole, [])


def test_lines_of_another_unit_are_not_counted(resume: Any, path: Path) -> None:
    whole, _, _ = resume()
    lines = path.read_bytes().splitlines(keepends=True)
    failed = next(line for line in lines if b"scenario failed" in line)
    path.write_bytes(b"".join((*lines[:-1], failed, lines[-1])))
    assert resume()[:2] == (whole, [])
    path.write_bytes(b"".join((*lines[:3], failed, *lines[3:])))
    summary, damaged, _ = resume()
    assert summary == whole
    assert damaged


def test_a_duplicate_unit_counts_once(resume: Any, path: Path) -> None:
    whole, _, done = resume()
    plan, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((plan, *lines[:-1], *lines)))
    assert resume() == (whole, [], done or len(_units(lines)))


def _units(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if b'"event":"unit finished"' in line]


def test_a_damaged_plan_is_restored_from_units(resume: Any, path: Path) -> None:
    whole, _, _ = resume()
    plan, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(plan[:-5] + b"\n" + rest)
    summary, damaged, done = resume()
    assert (summary, damaged) == (whole, ["line 1 is damaged"])
    assert done == len(_units(rest.splitlines()))
    assert path.read_bytes().startswith(plan + b"\n")


def test_a_file_replaced_after_opening_is_not_written_to(
    campaign_spec: CampaignSpec, resume: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    taken = Journal._lock_and_read

    def late(self: Journal, *, fresh: bool) -> None:
        other.replace(path)
        taken(self, fresh=fresh)

    monkeypatch.setattr(Journal, "_lock_and_read", late)
    with pytest.raises(JournalError, match="another campaign is writing to it"):
        Journal(path.parent, campaign_spec.plan, lambda: 1.5)
