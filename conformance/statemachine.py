"""A Hypothesis state machine that drives all the managers of a node together.

Its rules are the actions of a `Life`: they look at what was asked and never at an answer, so
that the same draws make the same calls against any implementation with the same claims. Every
rule makes steps of the form that cases have; the player judges them. Hypothesis itself leaves
some rules out of each run, and the life some managers, options and kinds of pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import event, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from numaproof.conformance.generation.choices import drawn
from numaproof.conformance.generation.life import ACTIONS, Life
from numaproof.conformance.generation.machines import machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.claims import Claims
    from numaproof.conformance.fuzz import FuzzPlaying, Idle
    from numaproof.protocol.machine import MachineInfo


def _possible(name: str) -> Callable[[NodeMachine], bool]:
    action = ACTIONS[name]
    return lambda machine: machine.claims.has(action.needs) and action.possible(machine.life)


class NodeMachine(RuleBasedStateMachine):
    """One node's life, within what an implementation claims.

    Subclasses give `claims`, and `open_playing`, which says what is tested and how.
    """

    claims: Claims
    open_playing: Callable[[MachineInfo], FuzzPlaying | Idle]

    def __init__(self) -> None:
        super().__init__()
        self.playing: FuzzPlaying | Idle | None = None
        self.life: Life

    @initialize(data=st.data())
    def boot(self, data: st.DataObject) -> None:
        """Chooses a machine, what the run is about and a configuration; starts the managers."""
        info, life, steps = data.draw(drawn(self._begin), label="node")
        self.life = life
        self.playing = self.open_playing(info)
        for step in steps:
            self.playing.step(step)

    def _begin(self, choices: Any) -> Any:
        info = machine(choices)
        life = Life(choices, info, self.claims)
        return info, life, life.begin(choices)

    def act(self, data: st.DataObject, name: str) -> None:
        """Does one action of the life."""
        assert self.playing is not None
        event(name)
        act = ACTIONS[name].act
        for step in data.draw(drawn(lambda choices: act(self.life, choices)), label=name):
            self.playing.step(step)

    def teardown(self) -> None:
        """Tells what was reached, and leaves nothing of this example behind."""
        if self.playing is None:
            return
        self.playing.close()
        self._steer()

    def _steer(self) -> None:
        """Towards nearly full nodes, gaps in them, and merges of many providers."""
        life = self.life
        total = max(1, len(life.facts.all))
        target(min(1.0, sum(life.alive.values()) / total), label="CPUs that pods hold")
        target(float(min(life.removals, len(life.alive))), label="gaps between pods")
        target(float(life.providers() * len(life.facts.nodes)), label="providers times nodes")


def _add_rules() -> None:
    """A rule for each action; one of greater weight has several, for all are chosen alike."""
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
