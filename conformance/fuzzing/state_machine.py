"""A Hypothesis state machine that exercises all managers of a node together.

Its rules are the actions of a `NodeScenario`. They depend only on requests, never on answers, so
the same draws lead to the same calls to any implementation with the same claims. Rules produce the
same steps as cases, and the player judges them.

Runs use swarm testing: each one leaves out a lot to get deeper into the rest. Hypothesis leaves out
rules, and the scenario leaves out managers, options and kinds of pods. The coverage of a run shows
both: how many examples used an action, and how often an option was on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from hypothesis import event, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from numaproof.conformance.fuzzing.coverage import Feature, features_of_steps
from numaproof.conformance.fuzzing.generation.choices import strategy_of
from numaproof.conformance.fuzzing.generation.life import ACTIONS, NodeScenario
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.conformance.fuzzing.generation.trees import on_a_tree
from numaproof.protocol.discovery import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.exploration import ExampleRun, NullRun
    from numaproof.protocol.machine import MachineInfo


def _possible(name: str) -> Callable[[NodeMachine], bool]:
    action = ACTIONS[name]
    return lambda machine: machine.life.may(name) and action.possible(machine.life)


def _fullness(life: NodeScenario) -> float:
    total = max(1, len(life.facts.all))
    held = min(sum(life.alive.values()), total)
    return held * held / total


class OpensExample(Protocol):
    """Opens the run for an example."""

    def __call__(self, machine: MachineInfo, *, from_tree: bool) -> ExampleRun | NullRun:
        """Opens a run on a machine; `from_tree` tells whether the machine is discovered."""


TARGETS: Mapping[str, Callable[[NodeScenario], float]] = {
    "CPUs that pods hold, times their share of the node": _fullness,
    "pods removed times pods that stay": lambda life: float(life.removals * len(life.alive)),
    "pods offered times providers times nodes": lambda life: float(
        len(life.offered_pods) * life.providers() * len(life.facts.nodes)
    ),
}
"""Targets that guide runs: large nodes that are nearly full, gaps, and merges of many providers.

Each can grow with every step. Hypothesis mutates runs from the end, so a target that depends only
on the beginning would hardly improve.
"""


class NodeMachine(RuleBasedStateMachine):
    """The life of a node, within an implementation's claims.

    Subclasses define `capabilities` and `open_example`, which runs the calls. They may set `aims`,
    the names of the `TARGETS` to use; a single target works better.
    """

    capabilities: Capabilities
    open_example: OpensExample
    aims: tuple[str, ...] = tuple(TARGETS)

    def __init__(self) -> None:
        super().__init__()
        self.example: ExampleRun | NullRun | None = None
        self.life: NodeScenario
        self._facts: Facts
        self._steps: list[Step] = []
        self._actions: list[str] = []

    @initialize(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        """Chooses a machine, a focus and a configuration, and starts the managers."""
        # Drawn separately, so that Hypothesis can change one and keep the others.
        info = data.draw(strategy_of(machine), label="machine")
        tree = None
        if self.capabilities.makes(WHOLE):
            tree = data.draw(strategy_of(lambda choices: on_a_tree(choices, info)), label="tree")
            info = tree or info
        self.life = data.draw(
            strategy_of(lambda choices: NodeScenario(choices, info, self.capabilities)),
            label="life",
        )
        self._facts = self.life.facts
        self.example = self.open_example(info, from_tree=tree is not None)
        self._play(data.draw(strategy_of(self.life.begin), label="start"))

    def act(self, data: st.DataObject, name: str) -> None:
        """Performs one action."""
        self._actions.append(name)
        act = ACTIONS[name].act
        self._play(data.draw(strategy_of(lambda choices: act(self.life, choices)), label=name))

    def _play(self, steps: Iterable[Step]) -> None:
        assert self.example is not None
        for step in steps:
            self._steps.append(step)
            self.example.step(step)

    def teardown(self) -> None:
        """Reports the coverage and cleans up."""
        if self.example is None:
            return
        try:
            self.example.finish()
        finally:
            self.example.close()
        features = features_of_steps(self._facts, self._steps, self._actions)
        for subject, name in features:
            event(f"{subject}: {name}")
        values = {name: value(self.life) for name, value in TARGETS.items()}
        for name in self.aims:
            target(values[name], label=name)
        self.end_example(features, values)

    def end_example(self, features: Mapping[Feature, int], values: Mapping[str, float]) -> None:
        """Receives the features of an example and its values for the `TARGETS`."""


def _add_rules() -> None:
    """Adds each action as often as its weight says, because all rules are equally likely."""
    for name, action in ACTIONS.items():
        for number in range(action.weight):
            setattr(NodeMachine, f"{name}_{number}", _rule(name, number))


def _rule(name: str, number: int) -> Any:
    @precondition(_possible(name))
    @rule(data=st.data())
    def act(self: NodeMachine, data: st.DataObject) -> None:
        self.act(data, name)

    act.__name__ = f"{name}_{number}"
    return act


_add_rules()
