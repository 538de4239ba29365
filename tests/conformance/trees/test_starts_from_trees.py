"""Cases and scenarios that start from their machine's tree."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from builders.targets import ChangedReference, ProcessBacked, case_of, target_of
from numaproof import fakesys
from numaproof.conformance.cases import loading, writing
from numaproof.conformance.differential import recordings
from numaproof.conformance.differential.lockstep import Pair, play
from numaproof.conformance.differential.recordings import record_seed
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, Scenario
from numaproof.conformance.execution.session import TREE
from numaproof.conformance.fuzzing.exploration import NullRun
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario, seeded_upgrade
from numaproof.conformance.fuzzing.shrinking import Shrinking
from numaproof.conformance.fuzzing.state_machine import NodeMachine
from numaproof.conformance.trees import as_discovered
from numaproof.protocol import messages
from numaproof.protocol.releases import NEWEST
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.implementation import Reference
from numaproof.workdir import trees
from quality import catalogue

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.machine import MachineInfo

CLAIMS = Capabilities(Reference().hello(hello_args("tests")), NEWEST)
WITHOUT = Capabilities(
    msgspec.structs.replace(
        CLAIMS.hello,
        operations=tuple(one for one in CLAIMS.hello.operations if one != "discover"),
    ),
    NEWEST,
)
LEAST = 0.3
"""The minimum share of case runs and scenarios that start from a tree."""

CASE = case_of("""
tree: true
config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
steps:
- start: {}
- admit: {pod: one, containers: {app: {limits: {cpu: 2, memory: 1Gi}}}}
  expect: {containers: {app: {exclusive: {cores: 1}}}}
- start: {}
- start: {offline: "7"}
  expect: anything
""")
UNCORE = case_of("""
config:
  cpuManagerPolicy: static
  cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: "true"}
  reservedSystemCPUs: "0"
steps:
- start: {}
- admit: {pod: one, containers: {app: {limits: {cpu: 3, memory: 1Gi}}}}
  expect: {containers: {app: {exclusive: {count: 3, uncore_caches: 1}}}}
""")


class Told(ChangedReference):
    """A reference that records its starts."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[messages.StartArgs] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the reference's answer."""
        if isinstance(args, messages.StartArgs):
            self.starts.append(args)
        return super().call(operation, args)


class Program(Told, ProcessBacked):
    """The same as a program."""


@pytest.fixture
def machine(tmp_path: Path) -> ProfileMachine:
    return ProfileMachine(fakesys.load_profile("laptop-4c8t"), tmp_path / "trees")


def play_case(case: Case, machine: ProfileMachine, target: Target, folder: Path) -> Run:
    """Runs a passing case on a machine with its tree."""
    assert machine.info is not None
    run = Run(target, case, machine.info, machine.tree, folder / "run")
    assert run.play().good
    return run


def test_starts_get_the_tree_until_the_machine_changes(
    machine: ProfileMachine, tmp_path: Path
) -> None:
    told = Told()
    run = play_case(CASE, machine, target_of(told), tmp_path)
    roots = [args.root for args in told.starts]
    assert roots == [machine.tree.in_process_path()] * 2 + [None]
    assert [args.machine is None for args in told.starts] == [True, True, False]
    assert not machine.folder.exists()
    assert run.steps()[0].args["root"] == TREE
    assert "operation discover" not in run.player.session.needed_claims


def test_a_program_gets_a_directory(machine: ProfileMachine, tmp_path: Path) -> None:
    program = Program()
    play_case(CASE, machine, target_of(program, oracle=True), tmp_path)
    assert program.starts[0].root == str(machine.folder / "laptop-4c8t")
    assert Path(program.starts[0].root, "proc/cpuinfo").is_file()


def test_without_discovery_a_start_gets_the_machine(
    machine: ProfileMachine, tmp_path: Path
) -> None:
    told = Told()
    play_case(CASE, machine, target_of(told, operations=WITHOUT.hello.operations), tmp_path)
    assert [args.machine for args in told.starts[:2]] == [machine.info] * 2


def test_a_wrong_discovery_affects_the_managers(tmp_path: Path) -> None:
    bug = next(one for one in catalogue.BUGS if one.id == "discovery-finds-no-uncore-caches")
    machine = ProfileMachine(fakesys.load_profile("epyc-7402p-nosmt"), tmp_path / "trees")
    assert machine.info is not None
    for tree in (True, False):
        with closing(bug.implementation()) as implementation:
            target = target_of(implementation, kubernetes=NEWEST)
            tried = msgspec.structs.replace(UNCORE, tree=tree)
            run = Run(target, tried, machine.info, machine.tree, tmp_path / str(tree))
            assert run.play().good is not tree


@pytest.mark.slow
def test_a_third_of_case_runs_start_from_a_tree(catalogue: list[ProfileMachine]) -> None:
    target = target_of(InProcess(Reference), kubernetes=NEWEST)
    runs = runner.select(loading.bundled_cases(), catalogue, target)
    from_trees = [run.machine for run in runs if run.case.tree]
    assert len(from_trees) >= LEAST * len(runs) + LEAST * len(recordings.bundled_recordings(NEWEST))
    # Small machines only; large ones would take longer.
    bundled = [run.machine for run in runs if run.case.machine is None]
    large = {machine.name for machine in bundled if machine.facts and machine.cpus > 64}
    names = {machine.name for machine in from_trees}
    assert len(names & large) >= len(large) / 2
    assert "laptop-4c8t" in names


def test_a_third_of_generated_nodes_start_from_a_tree() -> None:
    lives = [seeded_scenario(seed, CLAIMS) for seed in range(60)]
    assert sum(case.tree for case in lives) >= LEAST * len(lives)
    upgrades = [seeded_upgrade(seed, CLAIMS.of("1.36"), NEWEST) for seed in range(32)]
    assert sum(case.tree for case in upgrades) >= LEAST * len(upgrades)


def test_a_third_of_examples_start_from_a_tree() -> None:
    opened: list[bool] = []

    class Node(NodeMachine):
        capabilities = CLAIMS

        def open_example(self, machine: MachineInfo, *, from_tree: bool) -> NullRun:
            assert not from_tree or as_discovered(machine) == machine
            opened.append(from_tree)
            return NullRun()

    profile = settings(
        max_examples=60,
        stateful_step_count=1,
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=tuple(HealthCheck),
    )
    run_state_machine_as_test(Node, settings=profile)
    assert sum(opened) >= LEAST * len(opened)


def test_without_discovery_only_the_tree_is_missing() -> None:
    for seed in range(20):
        told = seeded_scenario(seed, WITHOUT)
        assert not told.tree
        assert _life(seed).steps == told.steps


@pytest.fixture(scope="module")
def life() -> Case:
    """A scenario that starts from a tree."""
    return next(one for one in map(_life, range(20)) if one.tree)


def test_a_scenario_with_a_tree_can_be_saved_and_replayed(life: Case, tmp_path: Path) -> None:
    (read,) = loading.parse(writing.text(life), "finding.yaml")
    assert read == life
    told = Told()
    target = target_of(told, kubernetes=NEWEST)
    (selected,) = runner.select([read], [], target)
    run = Run(target, selected.case, selected.info, selected.machine.tree, tmp_path / "run")
    assert run.play().good
    assert told.starts[0].root is not None
    assert discover(trees.open_root(told.starts[0].root)) == life.machine


def _life(seed: int) -> Case:
    return seeded_scenario(seed, CLAIMS)


def test_both_sides_of_a_difference_start_from_the_tree(life: Case, tmp_path: Path) -> None:
    left, right = Told(), Told()
    pair = Pair(left, right, CLAIMS, "kubelet")
    assert life.machine is not None
    assert play(pair, Scenario(life, life.machine), tmp_path).outcome == "pass"
    assert left.starts[0].root == right.starts[0].root
    assert str(left.starts[0].root).startswith(str(tmp_path))


def test_recordings_start_from_a_machine(tmp_path: Path) -> None:
    seed = next(seed for seed in range(20) if _life(seed).tree)
    made = record_seed(target_of(Told(), kubernetes=NEWEST), seed, tmp_path)
    assert made is not None
    assert not made.case.tree


def test_shrinking_removes_an_irrelevant_tree(life: Case) -> None:
    assert life.machine is not None
    scenario = Scenario(life, life.machine)
    assert not Shrinking(lambda _: True, tries=300).smallest(scenario).case.tree
    small = Shrinking(lambda candidate: candidate.case.tree, tries=300).smallest(scenario)
    assert small.case.tree
    assert len(small.machine.topology or ()) == 1
    assert as_discovered(small.machine) == small.machine
