"""Hints and merging by their plain definitions, and random machines to compare them on.

Slow and short: every set of nodes is listed, and every result is folded from provider to provider
as (nodes so far, all preferred so far, the nodes that all hints name).
"""

from __future__ import annotations

import random
import sys
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from numaproof.reference.topology.hints import ANYWHERE, Family, Hint, Need, Supply
from numaproof.reference.topology.search.merge import Rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numaproof.reference.topology.hints import Hints, Resources

    Providers = list[dict[str, Hints | None] | None]


@pytest.fixture
def oracle() -> ModuleType:
    """This module, for tests to call."""
    return sys.modules[__name__]


def mask(nodes: Sequence[int]) -> int:
    return sum(1 << node for node in nodes)


def _has(supplies: Sequence[Supply], nodes: int) -> int:
    return sum(supply.amount for supply in supplies if supply.nodes & nodes)


def _is_hint(family: Family, nodes: int) -> bool:
    return (
        all(
            _has(need.free, nodes) + sum(one.amount for one in need.reusable if one.nodes == nodes)
            >= need.amount
            for need in family.needs
        )
        and all(nodes & group for group in family.touching)
        and all(nodes == cell for node, cell in family.cells if nodes >> node & 1)
    )


def listed(family: Family) -> tuple[Hint, ...]:
    """The hints of a family in the kubelet's order."""
    sets = [
        mask(members)
        for size in range(1, len(family.nodes) + 1)
        for members in combinations(family.nodes, size)
    ]
    fewest = min(
        (
            nodes.bit_count()
            for nodes in sets
            if all(_has(need.total, nodes) >= need.amount for need in family.needs)
        ),
        default=len(family.nodes),
    )

    def preferred(nodes: int) -> bool:
        if nodes.bit_count() == fewest or not family.per_socket:
            return nodes.bit_count() == fewest
        touched = sum(1 for socket in family.sockets if socket & nodes)
        return touched == -(-fewest // family.per_socket)

    return tuple(Hint(nodes, preferred(nodes)) for nodes in sets if _is_hint(family, nodes))


def plain(providers: Providers) -> Providers:
    """The same with every family listed."""
    return [
        provider
        and {
            name: listed(hints) if isinstance(hints, Family) else hints
            for name, hints in provider.items()
        }
        for provider in providers
    ]


def fold(rules: Rules, providers: Sequence[Resources | None]) -> Hint:
    """The best result out of all; the hints are listed."""
    lists: list[list[Hint]] = []
    for provider in providers:
        for hints in provider.values() if provider else (None,):
            assert not isinstance(hints, Family)
            empty = Hint(ANYWHERE, preferred=hints is None)
            lists.append(list(hints) if hints else [empty])
    if rules.single:
        lists = [
            [
                one
                for one in hints
                if one.preferred and (one.nodes == ANYWHERE or one.nodes.bit_count() == 1)
            ]
            for hints in lists
        ]
    best = max(
        (
            min((one.nodes.bit_count() for one in hints if one.nodes != ANYWHERE), default=0)
            for hints in lists
        ),
        default=0,
    )
    states: set[tuple[int, bool, int | None]] = {(rules.nodes, True, ANYWHERE)}
    for hints in lists:
        states = {
            (nodes & one.nodes, preferred and one.preferred, _common(common, one.nodes))
            for nodes, preferred, common in states
            for one in hints
        }

    def order(result: Hint) -> tuple[int, int, tuple[int, float, int]]:
        size, fitness = result.nodes.bit_count(), rules.fitness(result.nodes)
        if result.preferred:
            return 0, 0, fitness
        if size == best:
            return 1, 0, fitness
        return (2, -size, fitness) if size < best else (3, 0, fitness)

    results = [
        Hint(nodes, preferred and common is not None)
        for nodes, preferred, common in states
        if nodes
    ]
    return min(results, key=order, default=Hint(rules.nodes, preferred=False))


def _common(common: int | None, nodes: int) -> int | None:
    if nodes == ANYWHERE:
        return common
    return nodes if common in (ANYWHERE, nodes) else None


def random_family(rng: random.Random, nodes: list[int]) -> Family:
    """Hints with twins, groups, sockets, things to use again and devices near several nodes."""
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
    return Family(
        nodes=tuple(own),
        needs=tuple(needs),
        touching=(some(),) if rng.random() < 0.25 else (),
        cells=cells,
        sockets=sockets,
        per_socket=len(own) // 2 if sockets else 0,
    )


def random_merge(seed: int, most_nodes: int) -> tuple[Rules, Providers]:
    """A machine and what its providers say, families and lists mixed."""
    rng = random.Random(seed)  # noqa: S311 - the same machines each time
    count = rng.randint(1, most_nodes)
    nodes = list(range(count)) if rng.random() < 0.7 else sorted(rng.sample(range(40), count))
    single = rng.random() < 0.1
    distances = None
    if not single and rng.random() < 0.4:
        regular = rng.random() < 0.5
        distances = {
            one: {
                other: (10 if i == j else 12 if i // 2 == j // 2 else 20)
                if regular
                else rng.choice([10, 12, 20])
                for j, other in enumerate(nodes)
            }
            for i, one in enumerate(nodes)
        }
    providers: Providers = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.05:
            providers.append(None)
        elif kind < 0.7:
            families = range(rng.choice([1, 1, 2]))
            providers.append({f"r{n}": random_family(rng, nodes) for n in families})
        elif kind < 0.85:
            providers.append({"list": listed(random_family(rng, nodes))})
        else:
            hints = [
                Hint(mask(rng.sample(nodes, rng.randint(1, count))), rng.random() < 0.4)
                for _ in range(rng.randint(0, 6))
            ]
            providers.append({"list": tuple(hints)})
    return Rules(mask(nodes), distances, single), providers
