"""The search agrees with the definitions for hints, merging and whole nodes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.conformance.differential.lockstep import Pair, play
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.fuzzing.exploration import node_scenario
from numaproof.protocol.sets import NUMASet
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.implementation import Reference
from numaproof.reference.topology import hints, policy
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology.hints import Demand, Need, Supply, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.options import TopologyOptions
from numaproof.reference.topology.search import enumeration, evaluation
from numaproof.reference.topology.search import merge as search
from numaproof.reference.topology.search.enumeration import list_hints, narrowest, satisfiable
from numaproof.reference.topology.search.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol import messages

DEFINITIONS = {
    "list_hints": hints.list_hints,
    "narrowest": hints.narrowest,
    "satisfiable": hints.satisfiable,
    "merge": merging.merge,
}
_MAX_NODES = 6


@pytest.mark.parametrize(
    ("nodes", "is_searched"), [(1, False), (2, False), (3, True)], ids=["one", "two", "three"]
)
def test_the_search_is_used_from_three_nodes_on(
    monkeypatch: pytest.MonkeyPatch, nodes: int, *, is_searched: bool
) -> None:
    found: list[str] = []
    for module, name in (
        (search, "merge"),
        (enumeration, "narrowest"),
        (enumeration, "satisfiable"),
    ):
        monkeypatch.setattr(module, name, lambda *_, name=name: found.append(name))
    free = tuple(Supply(1 << node, 1) for node in range(nodes))
    demand = Demand(tuple(range(nodes)), (Need(1, free, free),))
    evaluation.merge(Rules((1 << nodes) - 1), [{"cpu": demand}])
    evaluation.narrowest(demand)
    evaluation.satisfiable(demand)
    assert found == (["merge", "narrowest", "satisfiable"] if is_searched else [])


def test_the_definitions_can_replace_the_search() -> None:
    assert sorted(evaluation.__all__) == sorted(DEFINITIONS)


@pytest.mark.parametrize(("first", "count", "most_nodes"), [(0, 1500, 6), (100_000, 100, 10)])
def test_the_search_finds_the_definitions_winner(
    machines: Any, first: int, count: int, most_nodes: int
) -> None:
    for seed in range(first, first + count):
        rules, providers = machines.random_merge(seed, most_nodes)
        plain = machines.plain(providers)
        wanted = merging.merge(rules, plain)
        assert merge(rules, providers) == wanted, seed
        assert merge(rules, plain) == wanted, seed


def test_a_demand_lists_hints_in_the_kubelets_order(machines: Any) -> None:
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        demand = machines.random_demand(rng, list(range(rng.randint(1, 7))))
        assert list_hints(demand) == hints.list_hints(demand), seed


def test_the_narrowest_hint_containing_nodes_is_the_best(machines: Any) -> None:
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        nodes = list(range(rng.randint(1, 7)))
        demand = machines.random_demand(rng, nodes)
        given = machines.mask(rng.sample(nodes, rng.randint(0, min(2, len(nodes)))))
        assert narrowest(demand, given) == hints.narrowest(demand, given), seed
        assert satisfiable(demand) == hints.satisfiable(demand), seed


def test_a_first_choice_wins_only_if_it_ties(machines: Any) -> None:
    winners = 0
    for seed in range(1500):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        rules, providers = machines.random_merge(seed, 6)
        usual = merging.merge(rules, machines.plain(providers))
        nodes = list(NUMASet.from_mask(rules.nodes))
        choice = machines.mask(rng.sample(nodes, min(len(nodes), usual.nodes.bit_count())))
        chosen = replace(rules, first_choice=choice)
        merged = merging.merge(chosen, machines.plain(providers))
        assert merge(chosen, providers) == merged, seed
        assert merged in {usual, TopologyHint(choice, usual.preferred)}, seed
        winners += merged != usual
        demand = machines.random_demand(rng, nodes)
        assert narrowest(demand, 0, choice) == hints.narrowest(demand, 0, choice), seed
    assert winners > 50


@pytest.mark.parametrize("closest", [False, True])
@pytest.mark.parametrize("name", [policy.BEST_EFFORT, policy.RESTRICTED, policy.SINGLE_NUMA_NODE])
def test_policies_agree_with_the_definitions(
    machines: Any, monkeypatch: pytest.MonkeyPatch, name: str, *, closest: bool
) -> None:
    for seed in range(200):
        rng = random.Random(seed)  # noqa: S311 - the same machines each time
        nodes = sorted(rng.sample(range(8), rng.randint(1, 6)))
        _, providers = machines.random_merge(seed, len(nodes))
        distances = machines.random_distances(rng, nodes)
        options = TopologyOptions(closest=closest)
        made = policy.of_nodes(name, options, distances.rows, type(distances))
        found = made.merge(providers)
        with monkeypatch.context() as patch:
            patch.setattr(evaluation, "merge", merging.merge)
            assert made.merge(providers) == found, seed


class ByDefinition(Reference):
    """The reference without the search."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        with pytest.MonkeyPatch.context() as patch:
            for name, definition in DEFINITIONS.items():
                patch.setattr(evaluation, name, definition)
            return super().call(operation, args)


@pytest.mark.slow
@pytest.mark.parametrize("kubernetes", ["1.33", "1.36"])
def test_whole_nodes_agree_with_the_definitions(kubernetes: str, tmp_path: Path) -> None:
    capabilities = Capabilities(Reference().hello(hello_args("tests")), kubernetes)
    pair = Pair(InProcess(Reference), InProcess(ByDefinition), capabilities, "kubelet")
    played = 0
    for seed in range(50):
        scenario = node_scenario(seed, capabilities)
        if len(scenario.machine.topology or ()) <= _MAX_NODES:
            ended = play(pair, scenario, tmp_path)
            assert ended.outcome == "pass", (seed, ended.message)
            played += 1
    assert played > 35


def test_a_machine_with_34_nodes_is_merged_without_listing_sets() -> None:
    nodes = tuple(range(34))
    cpus = tuple(Supply(1 << node, 72) for node in (0, 1))
    memory = tuple(Supply(1 << node, 480 if node < 2 else 186) for node in range(6))
    gpus = tuple(Supply(1 << node, 1) for node in (2, 3, 4, 5))
    rules = Rules((1 << 34) - 1)
    cpu = Demand((0, 1), (Need(100, cpus, cpus),))
    alone = [{"cpu": cpu}, {"memory": Demand(nodes, (Need(900, memory, memory),))}]
    assert merge(rules, alone) == TopologyHint(0b11, preferred=True)
    # GPUs are far from the CPUs, so sets with enough of both are never minimal.
    near = [*alone, {"gpu": Demand(nodes, (Need(1, gpus, gpus),))}]
    assert merge(rules, near) == TopologyHint(0b11, preferred=False)


def test_too_many_sets_are_refused_immediately() -> None:
    supplies = tuple(Supply(1 << node, 1 + node) for node in range(34))
    demand = Demand(nodes=tuple(range(34)), needs=(Need(40, supplies, supplies),))
    with pytest.raises(UnsupportedError, match="34 NUMA nodes of 34 kinds"):
        merge(Rules((1 << 34) - 1), [{"cpu": demand}])
