"""How long the whole node takes by size of machine: one admission, hints, and a start.

Policies static and Static, best-effort with the Topology Manager's options as the machine needs
them. Run by hand: ``tox run -e benchmark``. Nothing here passes or fails by its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof import fakesys
from numaproof.conformance import manifests
from numaproof.conformance.cases import ContainerSpec, PodSpec
from numaproof.conformance.scratch import scratch_folder
from numaproof.protocol import messages
from numaproof.reference import startup
from numaproof.reference.kubernetes import releases
from numaproof.reference.machine.discovery import discover
from numaproof.reference.topology import options, scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.managers import Node
    from numaproof.reference.topology.policy import KeptHint

MACHINES = (
    "laptop-4c8t",
    "xeon-gold-6230-2s",
    "epyc-7763-2s-nps4",
    "epyc-12-nodes",
    "gb200-34-nodes",
)
"""8 CPUs on 1 node, 80 on 2, 256 on 8, 192 on 12, 144 on 2 of 34."""

POD = PodSpec("web", {"app": ContainerSpec(limits={"cpu": 3, "memory": "64Mi"})})
"""What is asked; on every machine it fits one node."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state directory in memory."""
    with scratch_folder() as made:
        yield made


def machine(name: str) -> MachineInfo:
    """A bundled machine as discovery finds it."""
    return discover(fakesys.TreePath.root(fakesys.build_tree(fakesys.load_profile(name))))


def config(nodes: int) -> Mapping[str, Any]:
    """A kubelet configuration with everything on, for a machine of so many NUMA nodes."""
    made: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": "best-effort",
        "kubeReserved": {"cpu": "1", "memory": "924Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    }
    if nodes > options.MOST_NODES_BY_DEFAULT:
        made["topologyManagerPolicyOptions"] = {"max-allowable-numa-nodes": "64"}
    return made


def started(name: str, folder: Path, pods: tuple[messages.Pod, ...] = ()) -> Node:
    """The reference's node on a bundled machine."""
    found = machine(name)
    args = messages.StartArgs(
        config(len(found.topology or ())), str(folder), machine=found, pods=pods
    )
    return startup.start(args, releases.release(None), lambda *_: found)


def fill(node: Node) -> list[messages.Pod]:
    """Admits pods of one CPU until half of the CPUs are taken; every second one goes again."""
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
def test_admission(benchmark: BenchmarkFixture, name: str, state: str, folder: Path) -> None:
    node = started(name, folder)
    if state == "half full" and name != "laptop-4c8t":
        fill(node)
    manifest = manifests.manifest(POD)
    kept: list[KeptHint] = []

    def call() -> None:
        pod = node.plan.read_pod(manifest)
        kept.clear()
        scope.admit(
            node.plan.topology_policy,
            node.plan.scope,
            node.providers,
            pod,
            lambda _container, affinity: kept.append(affinity),
        )
        node.reclaim(node.providers)

    benchmark(call)
    assert len(kept) == 1


@pytest.mark.benchmark(group="the same through the protocol's calls, files in memory written")
@pytest.mark.parametrize("name", MACHINES)
def test_admission_with_files(benchmark: BenchmarkFixture, name: str, folder: Path) -> None:
    node = started(name, folder)
    admit = messages.AdmitArgs(manifests.manifest(POD))
    remove = messages.RemoveArgs(manifests.uid("web"))

    def call() -> messages.Admitted:
        answer = node.admit(admit)
        node.remove(remove)
        return answer

    assert benchmark(call).containers


@pytest.mark.benchmark(group="hints of one container: all managers, listed")
@pytest.mark.parametrize("name", MACHINES[:4])
def test_hints(benchmark: BenchmarkFixture, name: str, folder: Path) -> None:
    node = started(name, folder)
    args = messages.HintsArgs(manifests.manifest(POD), "app")
    assert benchmark(node.hints, args).cpu


@pytest.mark.benchmark(group="a start with a full checkpoint")
@pytest.mark.parametrize("name", MACHINES)
def test_start(benchmark: BenchmarkFixture, name: str, folder: Path) -> None:
    pods = fill(started(name, folder)) if name != "laptop-4c8t" else []
    found = machine(name)
    args = messages.StartArgs(
        config(len(found.topology or ())), str(folder), machine=found, pods=tuple(pods)
    )
    release = releases.release(None)
    node = benchmark(startup.start, args, release, lambda *_: found)
    assert len(node.pods) == len(pods)
