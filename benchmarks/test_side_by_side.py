"""The reference and the real kubelet answer the same calls, one process each.

Give the program of `adapters/kubelet` in NUMAPROOF_KUBELET_PROGRAM; the table of each machine
shows the ratio. Run by hand: ``tox run -e benchmark``. Nothing here passes or fails by its time.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance import manifests
from numaproof.conformance.cases import ContainerSpec, PodSpec
from numaproof.conformance.subprocesses import Subprocess
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import NodeStart
    from pytest_benchmark.fixture import BenchmarkFixture

KUBELET = os.environ.get("NUMAPROOF_KUBELET_PROGRAM")
PROGRAMS = {
    "reference": [sys.executable, "-m", "numaproof", "reference"],
    "kubelet": shlex.split(KUBELET or ""),
}
PATIENCE = 120.0
"""Seconds; a kubelet takes some for each admission on 12 nodes."""

PODS = [
    manifests.manifest(
        PodSpec(f"pod-{number}", {"app": ContainerSpec(limits={"cpu": cpus, "memory": "64Mi"})})
    )
    for number, cpus in enumerate((2, 1, 2))
]


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Iterator[Subprocess]:
    """Each of the two as a running process."""
    command = PROGRAMS[request.param]
    if not command:
        pytest.skip("NUMAPROOF_KUBELET_PROGRAM names no program to compare with")
    running = Subprocess(command, PATIENCE)
    yield running
    running.close()


# A kubelet never ends on 34 nodes, so that machine has nobody to be compared with.
@pytest.mark.parametrize(
    "name", ["laptop-4c8t", "xeon-gold-6230-2s", "epyc-7763-2s-nps4", "epyc-12-nodes"]
)
def test_one_scenario(
    benchmark: BenchmarkFixture, name: str, program: Subprocess, node_start: NodeStart
) -> None:
    start = node_start(name)
    machine = start.machine
    assert machine
    nodes = len(machine.topology or ())
    benchmark.group = f"3 admissions and removals on {name} ({nodes} nodes)"
    assert isinstance(program.call("start", start), messages.Started)

    def scenario() -> list[messages.Answer]:
        answers = [program.call("admit", messages.AdmitArgs(pod)) for pod in PODS]
        for pod in PODS:
            program.call("remove", messages.RemoveArgs(pod["metadata"]["uid"]))
        return answers

    rounds = 2 if nodes > 8 else 200  # noqa: PLR2004 - the kubelet takes 3.6 s for each there
    answers = benchmark.pedantic(scenario, rounds=rounds, warmup_rounds=1)
    assert all(isinstance(answer, messages.Admitted) for answer in answers)
