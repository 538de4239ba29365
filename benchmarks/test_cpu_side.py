"""Time taken by the CPU side on machines of different sizes, as a ratio to the fastest.

Run by hand: ``tox run -e benchmark``. No benchmark fails because of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, PodSpec
from numaproof.protocol import messages
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

MACHINES = (
    "laptop-4c8t",
    "xeon-gold-6230-2s",
    "epyc-7763-2s-nps4",
    "epyc-9654-2s-nps4",
)
"""8 CPUs on 1 node, 80 on 2, 256 on 8, 384 on 8."""


def start_reference(name: str, folder: Path) -> Reference:
    """Returns the reference, started with policy static on a bundled machine."""
    tree = fakesys.TreePath.root(fakesys.build_tree(fakesys.load_profile(name)))
    reference = Reference()
    config = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}
    answer = reference.call(
        "start", messages.StartArgs(config, str(folder), machine=discover(tree))
    )
    assert isinstance(answer, messages.Started)
    return reference


@pytest.mark.benchmark(group="one admission and removal, with checkpoints written to memory")
@pytest.mark.parametrize("name", MACHINES)
def test_admission(benchmark: BenchmarkFixture, name: str, folder: Path) -> None:
    reference = start_reference(name, folder)
    spec = PodSpec("web", {"app": ContainerSpec(limits={"cpu": 3, "memory": "64Mi"})})
    admit = messages.AdmitArgs(manifests.manifest(spec))
    remove = messages.RemoveArgs(manifests.uid("web"))

    def call() -> messages.Answer:
        answer = reference.call("admit", admit)
        reference.call("remove", remove)
        return answer

    assert isinstance(benchmark(call), messages.Admitted)


@pytest.mark.benchmark(group="hints of one container")
@pytest.mark.parametrize("name", MACHINES)
def test_hints(benchmark: BenchmarkFixture, name: str, folder: Path) -> None:
    reference = start_reference(name, folder)
    spec = PodSpec("web", {"app": ContainerSpec(limits={"cpu": 3, "memory": "64Mi"})})
    args = messages.HintsArgs(manifests.manifest(spec), "app")
    assert isinstance(benchmark(reference.call, "hints", args), messages.NodeHints)


@pytest.mark.benchmark(group="discovery of a tree in memory")
@pytest.mark.parametrize("name", MACHINES)
def test_discovery(benchmark: BenchmarkFixture, name: str) -> None:
    tree = fakesys.build_tree(fakesys.load_profile(name))
    machine = benchmark(lambda: discover(fakesys.TreePath.root(tree)))
    assert machine.num_cores


@pytest.mark.benchmark(group="a profile becomes a tree")
@pytest.mark.parametrize("name", MACHINES)
def test_building_a_tree(benchmark: BenchmarkFixture, name: str) -> None:
    profile = fakesys.load_profile(name)
    assert benchmark(fakesys.build_tree, profile)
