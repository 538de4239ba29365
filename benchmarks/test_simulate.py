"""Time taken by `numaproof simulate` with many pods, without reading files.

Run by hand: ``tox run -e benchmark``. No benchmark fails because of its time.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import ContainerSpec, PodSpec
from numaproof.simulation.admission import Question
from numaproof.simulation.fleet import NamedNode, simulate_fleet
from numaproof.simulation.pods import DescribedPod
from numaproof.simulation.what_ifs import simulate
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from conftest import NodeStart
    from numaproof.protocol import messages

SIZES = ("1", "2", "3", "4", "8", "16", "500m")


def described_pods(count: int) -> list[DescribedPod]:
    """Returns Guaranteed pods of several sizes in a random order, always the same."""
    chance = random.Random(1)  # noqa: S311 - not for security
    pods = []
    for number in range(count):
        amounts = {"cpu": chance.choice(SIZES), "memory": "1Gi"}
        spec = PodSpec(f"pod-{number}", {"app": ContainerSpec(requests=amounts, limits=amounts)})
        pods.append(DescribedPod(f"Pod/default/pod-{number}", manifests.manifest(spec)))
    return pods


def node_question(start: messages.StartArgs) -> Question:
    """Returns the node that a request starts."""
    assert start.machine is not None
    return Question(start.machine, {**start.config, "maxPods": 1000}, "1.37")


@pytest.mark.benchmark(group="500 pods on one node of 384 CPUs, with explanations and warnings")
def test_one_node(benchmark: BenchmarkFixture, node_start: NodeStart) -> None:
    question = node_question(node_start("epyc-9654-2s-nps4"))
    pods = described_pods(500)

    def call() -> int:
        with scratch_folder() as folder:
            return len(simulate(question, pods, folder).pods)

    assert benchmark(call) == len(pods)


@pytest.mark.benchmark(group="2,000 pods on 100 nodes of three kinds")
def test_many_nodes(benchmark: BenchmarkFixture, node_start: NodeStart) -> None:
    names = ("epyc-7763-2s-nps4", "xeon-gold-6230-2s", "epyc-7402p-nps2")
    questions = [node_question(node_start(name)) for name in names]
    nodes = [NamedNode(f"node-{number}", questions[number % 3]) for number in range(100)]
    pods = described_pods(2000)

    def call() -> int:
        with scratch_folder() as folder:
            return len(simulate_fleet(nodes, pods, folder).placements)

    assert benchmark(call) == len(pods)
