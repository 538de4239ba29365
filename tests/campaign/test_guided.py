"""Campaigns led by the coverage of a program."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

from builders.targets import target_of
from numaproof.campaign.campaign import run
from numaproof.campaign.journal import Journal
from numaproof.campaign.worker import UnitWorker
from numaproof.cli.main import cli
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol.campaign import Seeds, SeedSlice
from numaproof.reports.campaign import as_text

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.campaign.planning import CampaignSpec

LIVES = 40

COUNTS = """
import sys
from msgspec.structs import replace
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
reference = Reference()
reached, before = set(), ""
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    if request.op == "coverage":
        answer, reached = messages.Coverage(tuple(reached)), set()
    else:
        answer = reference.call(request.op, codec.decode_args(request))
    if request.op == "hello":
        answer = replace(answer, operations=(*answer.operations, "coverage"))
        before = ""
    elif request.op != "coverage":
        # Like code that runs only after something else.
        reached.add(f"{request.op} {before}")
        before = f"{request.op} {type(answer).__name__}"
    if request.op == "merge":
        answer = messages.Fault("boom", "")
    sys.stdout.buffer.write(codec.encode_answer(request.id, answer))
    sys.stdout.flush()
"""


@pytest.fixture
def guided(campaign_spec: CampaignSpec, tmp_path: Path) -> CampaignSpec:
    """A guided campaign of two lineages on a program that reports coverage and fails each merge."""
    (tmp_path / "counts.py").write_text(COUNTS)
    words = (sys.executable, str(tmp_path / "counts.py"))
    with closing(Subprocess(words, 60.0)) as program:
        target = target_of(program, kubernetes="1.37", command=words)
    return replace(
        campaign_spec,
        targets=(target,),
        selected_cases=(),
        seeds=Seeds(0, LIVES),
        seeds_per_unit=LIVES // 2,
        is_guided=True,
    )


def conduct(spec: CampaignSpec, folder: Path, one_by_one: Any) -> Journal:
    (folder / "work").mkdir(parents=True)
    with (
        closing(UnitWorker(spec.job, folder / "work")) as worker,
        Journal(folder, spec.plan, lambda: 1.5) as journal,
    ):
        list(run(journal, spec.units, one_by_one(worker)))
    return journal


def test_a_finding_of_a_lineage_is_shrunk_to_a_case(
    guided: CampaignSpec, one_by_one: Any, tmp_path: Path
) -> None:
    summary = conduct(guided, tmp_path / "out", one_by_one).finished_units.summary()
    assert summary.complete
    assert summary.coverage
    assert "admit start Started" in summary.coverage.blocks
    found = re.search(
        r"^Coverage: (\d+) blocks reached, (\d+) scenarios kept$", as_text(summary), re.MULTILINE
    )
    assert found
    assert found[1] == str(len(summary.coverage.blocks))
    assert 1 < summary.coverage.kept_scenarios == int(found[2]) < LIVES
    (finding,) = summary.findings
    assert re.fullmatch(r"in life \d+, 1\.37 kubelet", finding.first)
    assert finding.file
    (case,) = loading.read_file(tmp_path / "out" / finding.file)
    assert [step.verb for step in case.steps] == ["merge"]


def test_a_lineage_repeats_exactly(guided: CampaignSpec, tmp_path: Path) -> None:
    (unit, _) = (one for one in guided.units() if isinstance(one, SeedSlice))
    with closing(UnitWorker(guided.job, tmp_path)) as worker:
        lines = [worker.do(unit).lines.splitlines() for _ in range(2)]
    *first, first_end = (msgspec.json.decode(line) for line in lines[0])
    *again, again_end = (msgspec.json.decode(line) for line in lines[1])
    assert first == again
    assert first_end | {"seconds": 0} == again_end | {"seconds": 0}


def test_a_program_without_coverage_cannot_lead_a_campaign(tmp_path: Path) -> None:
    words = ["campaign", "--guided", "--no-cases", "--out", str(tmp_path / "out")]
    ended = CliRunner().invoke(cli, words)
    assert ended.exit_code == 2
    assert "claims the operation `coverage`, which numaproof reference" in ended.output
    assert "building.py" in ended.output
    assert not (tmp_path / "out").exists()


def test_guided_campaigns_need_seeds() -> None:
    ended = CliRunner().invoke(cli, ["campaign", "--guided", "--no-seeds"])
    assert ended.exit_code == 2
    assert "--guided contradicts --no-seeds; remove one of them" in ended.output
