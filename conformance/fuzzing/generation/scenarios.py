"""Whole scenarios: a machine, and a node's life on it, as a case that can be played and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases.schema import Case
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import ACTIONS, Life
from numaproof.conformance.fuzzing.generation.machines import machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.protocol.machine import MachineInfo

_FEWEST, _MOST = 3, 16
"""Actions of a scenario after its first start."""


def case_of(
    name: str, title: str, steps: Iterable[Step], machine: MachineInfo | None = None
) -> Case:
    """The steps as a case, which tests no requirement but is judged by the invariants."""
    return Case(name, title, (), level="invariants", machine=machine, steps=tuple(steps))


def seeded_scenario(seed: int, capabilities: Capabilities) -> Case:
    """The scenario of a seed: the same for the same claims, on every version of Python."""
    return scenario(Seeded(seed), capabilities, f"scenario-{seed}")


def scenario(choices: Choices, capabilities: Capabilities, name: str = "scenario") -> Case:
    """A scenario of up to sixteen actions, some of whose kinds are left out."""
    info = machine(choices)
    life = Life(choices, info, capabilities)
    steps = [*life.begin(choices)]
    kinds = [
        name for name in ACTIONS if life.may(name) and (name == "admit" or not choices.chance(3))
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
    return case_of(name, "A made-up node and its life", steps, info)
