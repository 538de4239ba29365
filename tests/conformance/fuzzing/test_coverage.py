"""The coverage of fuzzing: independent of answers, with varied examples, guided by targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import run_state_machine_as_test

from builders.targets import changed_reference, target_of
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.fuzzing.exploration import ExampleRun, NullRun
from numaproof.conformance.fuzzing.fuzz import STEPS
from numaproof.conformance.fuzzing.fuzz_options import BATCH
from numaproof.conformance.fuzzing.state_machine import TARGETS, NodeMachine
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.machine import MachineInfo


@dataclass
class ExampleLog:
    """The content of generated examples."""

    machines: list[MachineInfo] = field(default_factory=list)
    steps: list[tuple[Step, ...]] = field(default_factory=list)
    actions: list[dict[str, int]] = field(default_factory=list)
    values: list[dict[str, float]] = field(default_factory=list)


def run_examples(
    target: Target, examples: int, seed: int, *, play: bool = False, aims: tuple[str, ...] = ()
) -> ExampleLog:
    """Generates examples for a seed, played or not, with or without targets."""
    all_of_them = ExampleLog()

    class Node(NodeMachine):
        capabilities = target.capabilities

        def open_example(self, machine: MachineInfo, *, from_tree: bool) -> ExampleRun | NullRun:
            all_of_them.machines.append(machine)
            if not play:
                return NullRun()
            folder = scratch / str(len(all_of_them.machines))
            return ExampleRun(target, machine, folder, failures=[], from_tree=from_tree)

        def end_example(self, features: Any, values: Any) -> None:
            if isinstance(self.example, ExampleRun):
                all_of_them.steps.append(tuple(self.example.steps))
            actions = {name: count for (what, name), count in features.items() if what == "actions"}
            all_of_them.actions.append(actions)
            all_of_them.values.append(dict(values))

    Node.aims = aims
    profile = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=tuple(HealthCheck),
    )
    with scratch_folder() as scratch:
        run_state_machine_as_test(with_seed(seed)(Node), settings=profile)
    return all_of_them


def test_calls_do_not_depend_on_answers(reference: Target) -> None:
    others = (
        target_of(changed_reference(start=lambda _: messages.StartRefused("cpu", "never"))),
        target_of(InProcess(lambda: Reference(follows_docs=True))),
    )
    first = run_examples(reference, 6, seed=3, play=True)
    assert sum(map(len, first.steps)) > 30
    for other in others:
        again = run_examples(other, 6, seed=3, play=True)
        assert again.machines == first.machines
        assert again.steps == first.steps


@pytest.fixture(scope="module")
def swarm() -> list[dict[str, int]]:
    """The actions of 60 examples that are long enough to have some."""
    every = run_examples(target_of(InProcess(Reference)), 60, seed=1).actions
    return [one for one in every if sum(one.values()) > STEPS - 4]


def test_each_example_omits_most_kinds_of_actions(swarm: list[dict[str, int]]) -> None:
    assert len(swarm) > 30
    # Out of fourteen kinds, twelve random steps would include seven or more.
    assert sum(map(len, swarm)) / len(swarm) < 6
    without = [
        sum("remove" not in one for one in swarm),
        sum("restart" not in one for one in swarm),
    ]
    assert all(len(swarm) / 3 < count < len(swarm) for count in without)
    assert {"admit", "remove", "restart", "damage", "merge"} <= {
        name for one in swarm for name in one
    }


@pytest.mark.slow
def test_targeted_search_reaches_more_than_random_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hypothesis draws constants from local modules, which include loaded test modules.
    monkeypatch.setattr(providers, "_get_local_constants", Constants)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", LRUCache(1024))
    target = target_of(InProcess(Reference))

    def batch_values(*aims: str) -> list[list[dict[str, float]]]:
        """Returns what the examples of three batches reach."""
        return [run_examples(target, BATCH, seed, aims=aims).values for seed in range(3)]

    def best(batches: list[list[dict[str, float]]], aim: str) -> float:
        """Adds up the best half of the examples."""
        return sum(sum(sorted(one[aim] for one in some)[-BATCH // 2 :]) for some in batches)

    by_chance = batch_values()
    for aim in TARGETS:
        assert best(batch_values(aim), aim) > 1.3 * best(by_chance, aim), aim
