"""Time taken by the Topology Manager's merge, by nodes, providers and kind of hints.

Run by hand: ``tox run -e benchmark``. No benchmark fails because of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.implementation import Reference
from numaproof.reference.topology.hints import Demand, Need, Supply
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search.evaluation import merge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_benchmark.fixture import BenchmarkFixture


def demand(
    nodes: int, total: Mapping[int, int], amount: int, in_use: Mapping[int, int] | None = None
) -> Demand:
    """Returns the hints for `amount` on `nodes` nodes with `total` each, some of it `in_use`."""
    in_use = in_use or {}
    return Demand(
        nodes=tuple(range(nodes)),
        needs=(
            Need(
                amount,
                tuple(Supply(1 << node, has - in_use.get(node, 0)) for node, has in total.items()),
                tuple(Supply(1 << node, has) for node, has in total.items()),
            ),
        ),
    )


@pytest.mark.benchmark(group="merge: 8 nodes, every set a hint")
@pytest.mark.parametrize("providers", [2, 3, 4])
@pytest.mark.parametrize("preferred", ["none", "some"])
def test_listed_hints_of_8_nodes(
    benchmark: BenchmarkFixture, providers: int, preferred: str
) -> None:
    # With "some", providers prefer different sets, so no set is preferred by all.
    hints = [
        tuple(
            messages.Hint(
                NUMASet.from_mask(nodes), preferred == "some" and nodes % providers == number
            )
            for nodes in range(1, 1 << 8)
        )
        for number in range(providers)
    ]
    args = messages.MergeArgs(
        nodes=tuple(range(8)),
        policy="best-effort",
        providers=tuple({f"resource-{number}": one} for number, one in enumerate(hints)),
    )
    assert isinstance(benchmark(Reference().call, "merge", args), messages.Merged)


@pytest.mark.benchmark(group="merge: 12 nodes, 2 providers")
@pytest.mark.parametrize("state", ["empty", "in use"])
def test_described_hints_of_12_nodes(benchmark: BenchmarkFixture, state: str) -> None:
    used = {node: node for node in range(12)} if state == "in use" else {}
    cpus = demand(12, dict.fromkeys(range(12), 16), 40, used)
    memory = demand(12, dict.fromkeys(range(12), 64), 80, used)
    providers = [{"cpu": cpus}, {"memory": memory}]
    assert benchmark(merge, Rules((1 << 12) - 1), providers).nodes


@pytest.mark.benchmark(group="merge: 34 nodes (2 with CPUs, 4 GPUs with memory, 28 empty)")
@pytest.mark.parametrize("state", ["empty", "in use"])
def test_described_hints_of_34_nodes(benchmark: BenchmarkFixture, state: str) -> None:
    used = {0: 12, 1: 41, 2: 7, 4: 99} if state == "in use" else {}
    cpus = demand(2, {0: 72, 1: 72}, 40, used)
    memory = demand(34, {0: 480, 1: 480} | dict.fromkeys(range(2, 6), 186), 400, used)
    gpus = demand(34, dict.fromkeys(range(2, 6), 1), 2)
    providers = [{"cpu": cpus}, {"memory": memory}, {"gpu": gpus}]
    assert benchmark(merge, Rules((1 << 34) - 1), providers).nodes
