"""Time taken by the whole node on machines of different sizes: an admission, hints, and a start.

The policies are static, Static and best-effort, with the options that the machine needs. Run by
hand: ``tox run -e benchmark``. No benchmark fails because of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, PodSpec
from numaproof.protocol import messages
from numaproof.reference import startup
from numaproof.reference.deviations import releases
from numaproof.reference.topology import scope

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from conftest import NodeStart
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.node import StartedNode
    from numaproof.reference.topology.hints import TopologyHint

MACHINES = (
    "laptop-4c8t",
    "xeon-gold-6230-2s",
    "epyc-7763-2s-nps4",
    "epyc-12-nodes",
    "gb200-34-nodes",
)
"""8 CPUs on 1 node, 80 on 2, 256 on 8, 192 on 12, 144 on 2 of 34."""

POD = PodSpec("web", {"app": ContainerSpec(limits={"cpu": 3, "memory": "64Mi"})})
"""The pod to admit; it fits on one node of every machine."""


def start_node(args: messages.StartArgs) -> StartedNode:
    """Returns the reference's node after a start with a machine."""

    def reject_discovery(*_: object) -> MachineInfo:
        raise AssertionError("no tree is read")

    return startup.start(args, releases.release(None), reject_discovery)


def fill(node: StartedNode) -> list[messages.Pod]:
    """Admits pods with one CPU until half of the CPUs are in use, removing every second pod."""
    free = node.cpus.state.shared.bit_count()
    made = [
        manifests.manifest(
            PodSpec(f"pod-{number}", {"app": ContainerSpec(limits={"cpu": 1, "memory": "64Mi"})})
        )
        for number in range(free - 8)
    ]
    for pod in made:
        node.admit(messages.AdmitArgs(pod))
    for pod in made[::2]:
        node.remove(messages.RemoveArgs(pod["metadata"]["uid"]))
    return made[1::2]


@pytest.mark.benchmark(group="one admission and removal of a pod, no files")
@pytest.mark.parametrize("state", ["empty", "half full"])
@pytest.mark.parametrize("name", MACHINES)
def test_admission(
    benchmark: BenchmarkFixture, name: str, state: str, node_start: NodeStart
) -> None:
    node = start_node(node_start(name))
    if state == "half full" and name != "laptop-4c8t":
        fill(node)
    manifest = manifests.manifest(POD)
    kept: list[TopologyHint] = []

    def call() -> None:
        pod = node.read_pod(manifest)
        kept.clear()
        scope.admit(
            node.setup.topology_policy,
            node.setup.scope,
            node.providers,
            pod,
            lambda _container, affinity: kept.append(affinity),
        )
        node.remove_stale_state("reconcile")

    benchmark(call)
    assert len(kept) == 1


@pytest.mark.benchmark(group="the same through protocol calls, with files written to memory")
@pytest.mark.parametrize("name", MACHINES)
def test_admission_with_files(
    benchmark: BenchmarkFixture, name: str, node_start: NodeStart
) -> None:
    node = start_node(node_start(name))
    admit = messages.AdmitArgs(manifests.manifest(POD))
    remove = messages.RemoveArgs(manifests.uid("web"))

    def call() -> messages.Admitted:
        answer = node.admit(admit)
        node.remove(remove)
        return answer

    assert benchmark(call).containers


@pytest.mark.benchmark(group="hints of one container: all managers, listed")
@pytest.mark.parametrize("name", MACHINES[:4])
def test_hints(benchmark: BenchmarkFixture, name: str, node_start: NodeStart) -> None:
    node = start_node(node_start(name))
    args = messages.HintsArgs(manifests.manifest(POD), "app")
    assert benchmark(node.hints, args).cpu


@pytest.mark.benchmark(group="a start with a full checkpoint")
@pytest.mark.parametrize("name", MACHINES)
def test_start(benchmark: BenchmarkFixture, name: str, node_start: NodeStart) -> None:
    pods = fill(start_node(node_start(name))) if name != "laptop-4c8t" else []
    args = node_start(name, tuple(pods))
    node = benchmark(start_node, args)
    assert len(node.pods) == len(pods)
