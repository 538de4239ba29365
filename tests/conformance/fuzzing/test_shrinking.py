"""Shrinking scenarios to their relevant parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.machines import regular
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import AssignStep, MergeStep, Step
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.fuzzing import shrinking
from numaproof.conformance.fuzzing.generation.scenarios import case_of, seeded_scenario
from numaproof.conformance.fuzzing.shrinking import Shrinking
from numaproof.conformance.trees import ExistingTree
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

CLAIMS = Capabilities(Reference().hello(hello_args("tests")), "1.35")
LONG = 60.0


def admits(step: Step) -> bool:
    return step.verb == "admit"


@pytest.fixture
def scenario() -> Scenario:
    """A scenario with several admissions on a machine with several nodes."""
    for seed in range(1000):
        case = seeded_scenario(seed, CLAIMS)
        assert case.machine is not None
        nodes = case.machine.topology or ()
        if sum(map(admits, case.steps)) > 3 and len(nodes) > 2:
            return Scenario(case, case.machine)
    raise AssertionError("no seed makes such a scenario")


def cpus(machine: MachineInfo) -> int:
    return sum(
        len(core.thread_ids or ()) for node in machine.topology or () for core in node.cores or ()
    )


def test_steps_parts_and_machine_are_reduced(scenario: Scenario) -> None:
    def shows(candidate: Scenario) -> bool:
        return sum(map(admits, candidate.case.steps)) >= 2 and cpus(candidate.machine) >= 3

    small = Shrinking(shows, LONG).smallest(scenario)
    assert [step.verb for step in small.case.steps] == ["admit", "admit"]
    assert cpus(small.machine) == 3
    assert small.machine.num_cores == 3
    for step in small.case.steps:
        assert not isinstance(step.admit, str)
        assert step.admit is not None
        assert len(step.admit.containers) == 1
        assert not step.admit.init


def test_removing_a_node_removes_distances_and_memory(scenario: Scenario) -> None:
    small = Shrinking(lambda candidate: len(candidate.machine.topology or ()) >= 2, LONG).smallest(
        scenario
    )
    nodes = small.machine.topology or ()
    assert [len(node.distances or ()) for node in nodes] == [2, 2]
    assert small.machine.memory_capacity == sum(node.memory for node in nodes)


def test_a_machine_with_a_tree_is_not_reduced(scenario: Scenario, tmp_path: Path) -> None:
    rooted = Scenario(scenario.case, scenario.machine, ExistingTree(tmp_path))
    small = Shrinking(lambda _: True, LONG).smallest(rooted)
    assert small.machine == scenario.machine
    assert len(small.case.steps) == 1
    assert shrinking.case_of(small, "t").machine is None


def test_shrinking_ends_at_its_time_or_attempt_limit(scenario: Scenario) -> None:
    search = Shrinking(lambda _: True, 0.0)
    assert search.smallest(scenario) == scenario
    assert search.timed_out
    tried: list[Scenario] = []

    def shows(smaller: Scenario) -> bool:
        tried.append(smaller)
        raise ValueError("no scenario any more")

    search = Shrinking(shows, tries=3)
    assert search.smallest(scenario) == scenario
    assert (len(tried), search.timed_out) == (3, False)


def test_expectations_are_kept(scenario: Scenario) -> None:
    expected = {"anything"}
    assert {step.expect for step in scenario.case.steps} == expected

    def shows(smaller: Scenario) -> bool:
        return {step.expect for step in smaller.case.steps} != expected

    assert Shrinking(shows).smallest(scenario) == scenario


def test_calls_without_a_node_stay_within_the_machine() -> None:
    machine = regular(nodes=2, cores=2, threads=2)
    hints = {"cpu": [{"numa": [0, 1], "preferred": True}]}
    steps = [
        Step(assign=AssignStep("2-5", 2), expect="anything"),
        Step(merge=MergeStep((0, 1, 2), "restricted", (hints, None)), expect="anything"),
    ]
    found = Scenario(case_of("calls", "Two calls", steps, machine), machine)

    def shows(candidate: Scenario) -> bool:
        verbs = {step.verb for step in candidate.case.steps}
        hinted = [step.merge.providers[0] for step in candidate.case.steps if step.merge]
        return verbs == {"assign", "merge"} and any(hinted)

    smallest = Shrinking(shows).smallest(found)
    assign, merge = smallest.case.steps
    assert assign.assign
    assert merge.merge
    assert CPUSet.parse(assign.assign.available).issubset(Facts(smallest.machine).all)
    assert merge.merge.nodes
    assert cpus(smallest.machine) < cpus(machine)
