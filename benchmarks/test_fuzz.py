"""Time taken by a fuzz step, compared with generating the same examples without playing them.

Both sides draw the same machines, configurations and calls, because these don't depend on answers.
The ratio is therefore the cost of playing against the reference.

Run by hand: ``tox run -e benchmark``. No benchmark fails because of its time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, handshake, hello_args
from numaproof.conformance.execution.run import Target
from numaproof.conformance.fuzzing import strategies
from numaproof.conformance.fuzzing.exploration import ExampleRun, NullRun
from numaproof.conformance.fuzzing.fuzz import STEPS
from numaproof.conformance.fuzzing.state_machine import NodeMachine
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    from numaproof.conformance.cases.schema import Step
    from numaproof.protocol.machine import MachineInfo

EXAMPLES = 50
ROUNDS = 3
SEEDS = (1, 2, 3)


@pytest.fixture
def target() -> Target:
    """The reference in this process."""
    implementation = InProcess(Reference)
    hello = handshake(implementation, "benchmarks")
    return Target(implementation, hello, hello.kubernetes[-1], hello.level)


def test_steps_played_and_only_drawn(target: Target, report_ratio: Callable[[str], None]) -> None:
    drawn = played = 0.0
    steps = 0
    for seed in SEEDS:
        # Alternating, so that other load on the machine slows both down equally.
        times = [(_run(seed)[0], *_run(seed, target)) for _ in range(ROUNDS)]
        drawn += min(alone for alone, *_ in times)
        played += min(took for _, took, _ in times)
        steps += times[0][2]
    report_ratio(
        f"fuzzing, {len(SEEDS)} times {EXAMPLES} examples: {steps / drawn:.0f} steps per second of "
        f"CPU time only drawn, {steps / played:.0f} played, {drawn / played:.2f} of the rate"
    )
    assert steps


def _run(seed: int, target: Target | None = None) -> tuple[float, int]:
    """Returns the CPU time in seconds for the examples of a seed, and their number of steps.

    Without a `target`, nothing is played and no steps are counted.
    """
    made: list[list[Step]] = []
    capabilities_of = Capabilities(Reference().hello(hello_args("benchmarks")), NEWEST)

    class Node(NodeMachine):
        capabilities = capabilities_of

        def open_example(self, machine: MachineInfo, *, from_tree: bool) -> ExampleRun | NullRun:
            if target is None:
                return NullRun()
            run = ExampleRun(
                target, machine, scratch / str(len(made)), failures=[], from_tree=from_tree
            )
            made.append(run.steps)
            return run

    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=tuple(HealthCheck),
    )
    with scratch_folder() as scratch:
        began = time.process_time()
        run_state_machine_as_test(with_seed(seed)(Node), settings=profile)
        return time.process_time() - began, sum(map(len, made))


@pytest.mark.benchmark(group="generating the scenario of a seed")
def test_scenario(benchmark: BenchmarkFixture, target: Target) -> None:
    seeds = iter(range(10**9))
    case = benchmark(lambda: strategies.seeded_scenario(next(seeds), target.capabilities))
    assert case.machine is not None
