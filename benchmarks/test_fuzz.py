"""How long a fuzz step takes, beside the same examples with nothing played.

Both sides draw the same machines, configurations and calls, for these do not depend on answers:
the ratio is what playing against the reference costs on top of Hypothesis itself.

Run by hand: ``tox run -e benchmark``. Nothing here passes or fails by its time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

from numaproof.conformance import strategies
from numaproof.conformance.fuzz import STEPS, FuzzPlaying, Idle
from numaproof.conformance.implementation import InProcess, introduce
from numaproof.conformance.playing import Target
from numaproof.conformance.statemachine import NodeMachine
from numaproof.reference.node import Reference

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from numaproof.protocol.machine import MachineInfo

EXAMPLES = 50
SEED = 1


@pytest.fixture
def target() -> Target:
    """The reference in this process, with nothing beside it."""
    implementation = InProcess(Reference)
    hello = introduce(implementation, "benchmarks")
    return Target(implementation, hello, hello.kubernetes[-1], hello.level)


@pytest.mark.benchmark(group=f"fuzzing: {EXAMPLES} examples", timer=time.process_time)
@pytest.mark.parametrize("played", [False, True], ids=["drawn only", "played"])
def test_examples(benchmark: BenchmarkFixture, target: Target, *, played: bool) -> None:
    opened = 0

    class Node(NodeMachine):
        claims = target.claims

        def open_playing(self, machine: MachineInfo) -> FuzzPlaying | Idle:
            nonlocal opened
            opened += 1
            return FuzzPlaying(target, machine, []) if played else Idle()

    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=tuple(HealthCheck),
    )
    benchmark.pedantic(
        run_state_machine_as_test,
        args=(with_seed(SEED)(Node),),
        kwargs={"settings": profile},
        rounds=3,
    )
    assert opened >= EXAMPLES


@pytest.mark.benchmark(group="a scenario of a seed, made only")
def test_scenario(benchmark: BenchmarkFixture, target: Target) -> None:
    seeds = iter(range(10**9))
    case = benchmark(lambda: strategies.seeded_scenario(next(seeds), target.claims))
    assert case.machine is not None
