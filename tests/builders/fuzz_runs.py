"""Fuzz runs of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.fuzzing.fuzz import fuzz
from numaproof.conformance.fuzzing.fuzz_options import CI, Budget, FuzzOptions
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import events, messages
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.run import Target


def losing(state: messages.State) -> messages.State:
    """Loses a CPU when any is exclusive."""
    held = any(one.exclusive for pod in state.pods.values() for one in pod.values())
    lost = state.shared.first(1) if held and state.shared else CPUSet()
    return msgspec.structs.replace(state, shared=state.shared - lost)


def harness_run(target: Target) -> HarnessRun:
    """Runs `fuzz`."""
    return HarnessRun(target, load_registry(), "numaproof fuzz", "0.1")


def fuzz_events(
    target: Target,
    findings: Path,
    examples: int | None = 60,
    seed: int = 1,
    options: FuzzOptions = CI,
    seconds: float | None = None,
) -> Iterator[events.AnyEvent]:
    """Returns the events of a run without times."""
    budget = Budget(examples, seconds)
    for event in fuzz(harness_run(target), budget, seed, findings, options):
        yield msgspec.structs.replace(event, at=0.0)


def found_in(stream: list[events.AnyEvent]) -> list[events.DivergenceFound]:
    """Returns the findings of a run."""
    return [one for one in stream if isinstance(one, events.DivergenceFound)]


def replay_case(case: Case, target: Target, folder: Path) -> events.CaseFinished:
    """Replays a finding."""
    (chosen,) = runner.select([case], [], target)
    return runner.run_case(chosen, harness_run(target), folder)
