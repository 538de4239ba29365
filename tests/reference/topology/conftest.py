"""Random machines and providers' hints, to compare the search with the definitions."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest

from numaproof.reference.deviations.topology import DistancesByPosition
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import Demand, Need, Supply, TopologyHint, list_hints
from numaproof.reference.topology.merge import Rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numaproof.reference.topology.hints import Hints

    Providers = list[dict[str, Hints | None] | None]


@pytest.fixture
def machines() -> ModuleType:
    """This module, for tests to call."""
    return sys.modules[__name__]


def mask(nodes: Sequence[int]) -> int:
    """Generates a set of nodes."""
    return sum(1 << node for node in nodes)


def plain(providers: Providers) -> Providers:
    """Returns the providers with every demand's hints listed."""
    return [
        provider
        and {name: None if hints is None else list_hints(hints) for name, hints in provider.items()}
        for provider in providers
    ]


def random_demand(rng: random.Random, nodes: list[int]) -> Demand:
    """Generates a demand with interchangeable nodes, groups, sockets, reuse and wide devices."""
    own = [node for node in nodes if rng.random() < 0.85] or nodes[:1]
    if rng.random() < 0.2:
        rng.shuffle(own)

    def some(most: int = 3) -> int:
        return mask(rng.sample(own, min(len(own), rng.randint(1, most))))

    amounts = rng.choice([[0, 4], [4], [0, 2, 4], [1, 2, 3, 4, 5]])
    needs = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        total = [Supply(1 << node, rng.choice(amounts)) for node in own]
        free = [
            one if rng.random() < 0.6 else Supply(one.nodes, rng.randint(0, one.amount))
            for one in total
        ]
        if rng.random() < 0.2:
            wide = Supply(some(), rng.randint(1, 3))
            total, free = [*total, wide], [*free, wide]
        again = range(rng.choice([0, 0, 0, 1, 2]))
        reusable = tuple(Supply(some(), rng.randint(1, 6)) for _ in again)
        most = max(1, sum(one.amount for one in total) * 2 // 3 + 1)
        needs.append(Need(rng.randint(1, most), tuple(free), tuple(total), reusable))
    cells: tuple[tuple[int, int], ...] = ()
    if rng.random() < 0.25:
        cell = some(2)
        cells = tuple((node, cell) for node in own if cell >> node & 1)
    sockets: tuple[int, ...] = ()
    if rng.random() < 0.25 and len(own) > 1:
        half = len(own) // 2
        sockets = (mask(own[:half]), mask(own[half:]))
    return Demand(
        nodes=tuple(own),
        needs=tuple(needs),
        touching=(some(),) if rng.random() < 0.25 else (),
        cells=cells,
        sockets=sockets,
        per_socket=len(own) // 2 if sockets else 0,
    )


def random_distances(rng: random.Random, nodes: list[int]) -> Distances:
    """Generates distances by rule or position: pairs of near nodes, or anything."""
    regular = rng.random() < 0.5
    kind = Distances if rng.random() < 0.8 else DistancesByPosition
    return kind(
        {
            one: [
                (10 if i == j else 12 if i // 2 == j // 2 else 20)
                if regular
                else rng.choice([10, 12, 20])
                for j in range(len(nodes))
            ]
            for i, one in enumerate(nodes)
        }
    )


def random_merge(seed: int, most_nodes: int) -> tuple[Rules, Providers]:
    """Generates a machine and its providers' answers, both demands and lists."""
    rng = random.Random(seed)  # noqa: S311 - the same machines each time
    count = rng.randint(1, most_nodes)
    nodes = list(range(count)) if rng.random() < 0.7 else sorted(rng.sample(range(40), count))
    single = rng.random() < 0.1
    distances = None
    if not single and rng.random() < 0.4:
        distances = random_distances(rng, nodes)
    providers: Providers = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.05:
            providers.append(None)
        elif kind < 0.7:
            demands = range(rng.choice([1, 1, 2]))
            providers.append({f"r{n}": random_demand(rng, nodes) for n in demands})
        elif kind < 0.85:
            providers.append({"list": list_hints(random_demand(rng, nodes))})
        else:
            hints = [
                TopologyHint(mask(rng.sample(nodes, rng.randint(1, count))), rng.random() < 0.4)
                for _ in range(rng.randint(0, 6))
            ]
            providers.append({"list": tuple(hints)})
    return Rules(mask(nodes), distances, single), providers
