"""Whole scenarios: a machine, and a node's life on it, as a case that can be played and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases.schema import Case
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import ACTIONS, Life
from numaproof.conformance.fuzzing.generation.machines import machine

if TYPE_CHECKING:
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices

_FEWEST, _MOST = 3, 16
"""Actions of a scenario after its first start."""


def seeded_scenario(seed: int, capabilities: Capabilities) -> Case:
    """The scenario of a seed: the same for the same claims, on every version of Python."""
    return scenario(Seeded(seed), capabilities, f"scenario-{seed}")


def scenario(choices: Choices, capabilities: Capabilities, name: str = "scenario") -> Case:
    """A scenario of up to sixteen actions, some of whose kinds are left out."""
    info = machine(choices)
    life = Life(choices, info, capabilities)
    steps = [*life.begin(choices)]
    kinds = [
        name
        for name, action in ACTIONS.items()
        if capabilities.has(action.needs) and (name == "admit" or not choices.chance(3))
    ]
    for _ in range(choices.integer(_FEWEST, _MOST)):
        possible = [
            name
            for name in kinds
            if ACTIONS[name].possible(life)
            for _ in range(ACTIONS[name].weight)
        ]
        if possible:
            steps += ACTIONS[choices.pick(possible)].act(life, choices)
    return Case(
        id=name,
        title="A made-up node and its life",
        requirements=(),
        level="invariants",
        machine=info,
        steps=tuple(steps),
    )
