"""Shrinks a scenario while it still fails in the same way.

Hypothesis shrinks only what it has drawn. Scenarios from seeds or case files are shrunk here by
removing parts: steps (at first, half of them at a time), then parts of steps, then the machine's
tree, then parts of the machine.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.cases.schema import Case, MergeStep, PodSpec, Step
from numaproof.conformance.fuzzing.interrupts import OutOfTimeError
from numaproof.conformance.trees import as_discovered
from numaproof.protocol import codec
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.execution.run import Scenario
    from numaproof.protocol.machine import MachineInfo, Node

T = TypeVar("T")

DIFFERENCE = "difference"
"""The id of a case in which two implementations differ."""


CUT_SHORT = "not fully shrunk: the time limit ended it"
"""Marks a finding that a longer search might shrink further."""


@dataclass
class Shrinking:
    """A search for the smallest scenario; when it reaches a limit, it returns its best result.

    Attributes:
        shows: tells whether a scenario still fails in the same way. May raise a LookupError,
            ValueError or ProtocolError for scenarios that cannot run.
        seconds: the time limit.
        tries: the maximum number of scenarios to try. Without `seconds`, results are reproducible.
        timed_out: whether the time limit ended the search.
    """

    shows: Callable[[Scenario], bool]
    seconds: float = math.inf
    tries: float = math.inf
    timed_out: bool = field(default=False, init=False)
    _tries_left: float = field(default=math.inf, init=False)
    _sound: bool = field(default=False, init=False)

    def smallest(self, scenario: Scenario) -> Scenario:
        """Returns the smallest scenario found, or `scenario` if nothing can be removed."""
        deadline = time.monotonic() + self.seconds
        self._tries_left = self.tries
        self._sound = _sound(scenario)
        scenario, found = self._pass(scenario, deadline)
        while found:
            scenario, found = self._pass(scenario, deadline)
        return scenario

    def _pass(self, scenario: Scenario, deadline: float) -> tuple[Scenario, bool]:
        """Tries every removal once, continuing from each success; returns whether any succeeded."""
        found = False
        for smaller in (_without_steps, _without_parts, _without_tree, _smaller_machine):
            skip = 0
            while True:
                candidates = smaller(scenario)
                for number, candidate in enumerate(candidates):
                    self.timed_out = time.monotonic() > deadline
                    if self.timed_out or self._tries_left <= 0:
                        return scenario, False
                    # Candidates that failed before the last success wait for the next pass.
                    if number >= skip and self._still_shows(candidate):
                        scenario, found, skip = candidate, True, number
                        break
                else:
                    break
        return scenario, found

    def _still_shows(self, scenario: Scenario) -> bool:
        if self._sound and not _sound(scenario):
            return False
        self._tries_left -= 1
        try:
            return self.shows(scenario)
        except (LookupError, ValueError, codec.ProtocolError):
            return False  # the scenario no longer makes sense


def _sound(scenario: Scenario) -> bool:
    """Whether pods have containers, and calls without a node refer to the machine's nodes and CPUs.

    An API server refuses a pod without containers, and a kubelet may panic on it.
    """
    cpus = facts_of(scenario.machine).all
    for step in scenario.case.steps:
        if isinstance(step.admit, PodSpec) and not (step.admit.containers or step.admit.spec):
            return False
        if step.merge is not None and not _of_its_nodes(step.merge):
            return False
        available = step.assign.available if step.assign else ""
        # Expressions adapt to the machine.
        if available[:1].isdigit() and not CPUSet.parse(available).issubset(cpus):
            return False
    return True


def _of_its_nodes(merge: MergeStep) -> bool:
    nodes = {*merge.nodes}
    providers = msgspec.json.decode(codec.encode(merge.providers))
    given = [hints for provider in providers for hints in (provider or {}).values()]
    named = {node for hints in given for hint in hints or () for node in hint.get("numa") or ()}
    rows = nodes if merge.distances is None else {*map(int, merge.distances)}
    return bool(nodes) and named <= nodes == rows


def _with_steps(scenario: Scenario, steps: tuple[Step, ...]) -> Scenario:
    return replace(scenario, case=msgspec.structs.replace(scenario.case, steps=steps))


def _without_steps(scenario: Scenario) -> Iterator[Scenario]:
    """Yields scenarios without half of the steps, a quarter, and so on, starting from the end."""
    steps = scenario.case.steps
    size = len(steps) // 2
    while size:
        for end in range(len(steps), 0, -size):
            kept = steps[: max(end - size, 0)] + steps[end:]
            if kept:
                yield _with_steps(scenario, kept)
        size //= 2


def _without_parts(scenario: Scenario) -> Iterator[Scenario]:
    """Yields scenarios without one key or element of a step, if the result is a valid step.

    Expectations stay, because the default expectation is a different one, not a weaker one.
    """
    steps = scenario.case.steps
    for number, step in enumerate(steps):
        plain = msgspec.to_builtins(step)
        for smaller in _without_one(plain):
            try:
                changed = msgspec.convert(smaller, Step)
            except msgspec.ValidationError:
                continue
            kept = changed.expect == step.expect and getattr(changed, step.verb) is not None
            if kept and changed != step:
                yield _with_steps(scenario, (*steps[:number], changed, *steps[number + 1 :]))


def _without_one(value: Any) -> Iterator[Any]:
    """Yields a plain value without one of its parts, large parts first."""
    if isinstance(value, dict):
        for key in value:
            yield {other: inner for other, inner in value.items() if other != key}
        for key, inner in value.items():
            yield from ({**value, key: smaller} for smaller in _without_one(inner))
    elif isinstance(value, list | tuple):
        for place in range(len(value)):
            yield [*value[:place], *value[place + 1 :]]
        for place, inner in enumerate(value):
            for smaller in _without_one(inner):
                yield [*value[:place], smaller, *value[place + 1 :]]


def _without_tree(scenario: Scenario) -> Iterator[Scenario]:
    """Yields the scenario with a given machine instead of a discovered one."""
    if scenario.case.tree:
        yield replace(scenario, case=msgspec.structs.replace(scenario.case, tree=False))


def _smaller_machine(scenario: Scenario) -> Iterator[Scenario]:
    """Yields scenarios on a machine without one node, or without half of its CPUs, and so on."""
    if scenario.tree is not None:
        return  # the tree describes the whole machine
    for machine in _smaller_machines(scenario.machine):
        found = as_discovered(machine) if scenario.case.tree else machine
        if found is not None:
            yield replace(scenario, machine=found)


def _smaller_machines(machine: MachineInfo) -> Iterator[MachineInfo]:
    nodes = machine.topology or ()
    if len(nodes) > 1:
        yield from (_without_node(machine, node) for node in nodes[::-1])
    cpus = [*facts_of(machine).all]
    size = len(cpus) // 2
    while size:
        for end in range(len(cpus), size, -size):
            gone = CPUSet(cpus[end - size : end])
            yield manifests.without_cpus(machine, gone)
        size //= 2


def _without_node(machine: MachineInfo, removed_node: Node) -> MachineInfo:
    nodes = machine.topology or ()
    place = nodes.index(removed_node)
    machine = manifests.without_cpus(machine, facts_of(machine).nodes[removed_node.node_id])
    left = tuple(
        msgspec.structs.replace(node, distances=_without_place(node.distances, place))
        for number, node in enumerate(machine.topology or ())
        if number != place
    )
    return msgspec.structs.replace(
        machine, memory_capacity=machine.memory_capacity - removed_node.memory, topology=left
    )


def _without_place(distances: tuple[int, ...] | None, place: int) -> tuple[int, ...] | None:
    return None if distances is None else (*distances[:place], *distances[place + 1 :])


def case_of(scenario: Scenario, title: str) -> Case:
    """Converts the scenario to a case, with its machine unless it needs the machine's tree."""
    own = scenario.tree is None
    return msgspec.structs.replace(
        scenario.case,
        id=DIFFERENCE,
        title=title,
        aliases=(),
        level="invariants",
        steps=tuple(msgspec.structs.replace(one, expect="anything") for one in scenario.case.steps),
        machine=scenario.machine if own else None,
    )


def shrink(
    first: T, scenario: Scenario, try_scenario: Callable[[Scenario], T | None], tries: float
) -> tuple[T, bool]:
    """Returns the result for the smallest scenario that fails in the same way.

    The number of tries limits the search, so the result is reproducible unless the target's time
    limit ends the search.

    Args:
        first: the result for the whole scenario.
        scenario: the whole scenario.
        try_scenario: runs a smaller scenario; None if it does not fail in the same way.
        tries: the maximum number of scenarios to try.

    Returns:
        The result, and whether the time limit ended the search.
    """
    best = first

    def shows(smaller: Scenario) -> bool:
        nonlocal best
        found = try_scenario(smaller)
        best = best if found is None else found
        return found is not None

    try:
        Shrinking(shows, tries=tries).smallest(scenario)
    except OutOfTimeError:
        return best, True
    return best, False
