"""Cases in releases between the oldest and newest; CI plays a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.run import reference_target
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.judging.baselines import KUBELET
from numaproof.conformance.requirements import load_registry
from numaproof.protocol.events import GOOD
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.machines import ProfileMachine

SAMPLE = 150
"""The number of case runs for each release."""


@pytest.mark.parametrize("release", RELEASES[1:-1])
def test_a_sample_of_case_runs_passes(
    release: str, catalogue: list[ProfileMachine], tmp_path: Path
) -> None:
    target = reference_target(release, KUBELET)
    every = runner.select(loading.bundled_cases(), catalogue, target)
    sample = Seeded(RELEASES.index(release)).some(every, SAMPLE, SAMPLE)
    harness_run = HarnessRun(target, load_registry(), "", "")
    ends = [
        runner.run_case(one, harness_run, tmp_path / str(number))
        for number, one in enumerate(sample)
    ]
    assert [(one.case, one.machine) for one in ends if one.outcome not in GOOD] == []
