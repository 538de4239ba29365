"""Times the reference and the real kubelet with the same calls, each in its own process.

Set NUMAPROOF_KUBELET_PROGRAM to the program built from `adapters/kubelet`. Each machine gets a line
with both times and their ratio. Both programs keep their state in memory, and both times include
the harness's overhead. Run by hand: ``tox run -e benchmark``. No benchmark fails because of its
time.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, PodSpec
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import NodeStart

KUBELET = os.environ.get("NUMAPROOF_KUBELET_PROGRAM")
PATIENCE = 120.0
"""The time limit in seconds. On 12 nodes, the kubelet takes several for each admission."""

MACHINES = (
    *("laptop-4c8t", "core-i7-14700", "graviton2"),
    *("offline-node", "vm-sparse-cpus", "epyc-7402p-nps2", "hugepages-2s", "xeon-gold-6230-2s"),
    *("power8-s822lc", "epyc-7742-2s-nps1"),
    *("xeon-gold-6430-2s-cxl", "kunpeng-920-2s", "xeon-platinum-9242-2s"),
    *("epyc-7763-2s-nps4", "epyc-12-nodes"),
)
"""Machines with 1 to 12 nodes. On 34 nodes the kubelet never finishes."""

PODS = [
    manifests.manifest(
        PodSpec(f"pod-{number}", {"app": ContainerSpec(limits={"cpu": cpus, "memory": "64Mi"})})
    )
    for number, cpus in enumerate((2, 1, 2))
]


@pytest.mark.skipif(not KUBELET, reason="NUMAPROOF_KUBELET_PROGRAM is not set")
@pytest.mark.parametrize("name", MACHINES)
def test_three_admissions_and_removals(
    name: str, folder: Path, node_start: NodeStart, report_ratio: Callable[[str], None]
) -> None:
    start = node_start(name)
    assert start.machine
    nodes = len(start.machine.topology or ())
    # On 12 nodes the kubelet takes 13 s for each.
    turns, rounds = (1, 1) if nodes > 8 else (20, 15)  # noqa: PLR2004
    commands = ([sys.executable, "-m", "numaproof", "reference"], shlex.split(KUBELET or ""))
    with (
        closing(Subprocess(commands[0], PATIENCE)) as reference,
        closing(Subprocess(commands[1], PATIENCE)) as kubelet,
    ):
        sides = (reference, kubelet)
        for number, side in enumerate(sides):
            state = folder / str(number)
            state.mkdir()
            own_start = msgspec.structs.replace(start, state_dir=str(state))
            answer = side.call("start", own_start)
            assert isinstance(answer, messages.Started), answer
            scenario(side)
        # Alternating, so that other load on the machine slows both down equally.
        times = [
            [min(scenario(side) for _ in range(rounds)) for side in sides] for _ in range(turns)
        ]
    ours, theirs = (min(of_side) * 1000 for of_side in zip(*times, strict=True))
    cpus = start.machine.num_cores
    report_ratio(
        f"{name:24} {nodes:2} nodes, {cpus:3} CPUs: reference {ours:6.2f} ms, "
        f"kubelet {theirs:8.2f} ms, {theirs / ours:7.2f} times as fast"
    )


def scenario(side: Subprocess) -> float:
    """Admits the pods and removes them; returns the time taken in seconds."""
    began = time.perf_counter()
    answers = [side.call("admit", messages.AdmitArgs(pod)) for pod in PODS]
    for pod in PODS:
        side.call("remove", messages.RemoveArgs(pod["metadata"]["uid"]))
    took = time.perf_counter() - began
    assert all(isinstance(answer, messages.Admitted) for answer in answers), answers
    return took
