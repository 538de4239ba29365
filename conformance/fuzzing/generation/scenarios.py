"""Whole scenarios: a machine, and a node's life on it, as a case that can be played and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import Case, NoArguments, Step
from numaproof.conformance.fuzzing.generation import trees
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import ACTIONS, Life
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.protocol.discovery import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def discovery(name: str) -> Case:
    """The scenario of discovering a tree."""
    discover = Step(discover=NoArguments(), expect="anything")
    return case_of(name, "A made-up machine is discovered", [discover])


def on_its_tree(case: Case, choices: Choices, capabilities: Capabilities) -> Case:
    """A life that starts from the tree of its machine, if it is one of those; else as it is.

    This is chosen last: whoever has no discovery is asked the same of the same seed.
    """
    if case.machine is None or not capabilities.makes(WHOLE):
        return case
    machine = trees.on_a_tree(choices, case.machine)
    if machine is None:
        return case
    return msgspec.structs.replace(case, machine=machine, tree=True)


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
    case = case_of(name, "A made-up node and its life", steps, info)
    return on_its_tree(case, choices, capabilities)
