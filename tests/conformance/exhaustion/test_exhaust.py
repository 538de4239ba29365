"""Enumerating within a bound: nothing is missed, and the first counterexample is minimal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.fuzz_runs import found_in, harness_run, replay_case
from builders.targets import changed_reference, target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import Crashed
from numaproof.conformance.execution.run import reference_target
from numaproof.conformance.exhaustion.bounds import Bound, LivesSize, MergesSize
from numaproof.conformance.exhaustion.exhaust import exhaust
from numaproof.conformance.exhaustion.kinds import KINDS
from numaproof.conformance.exhaustion.setups import CPU_SETUPS
from numaproof.conformance.judging.baselines import KUBELET
from numaproof.protocol import events, messages
from numaproof.protocol.sets import CPUSet
from numaproof.reports.badge import badge
from numaproof.reports.summary import summarize
from numaproof.reports.wording import setting

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import Target

TINY = Bound("tiny", 2, (MergesSize(2, 1, 2),), (LivesSize("CPU Manager", CPU_SETUPS[::5], 2, 2),))


def run(
    target: Target, findings: Path, *kinds: str, other: Target | None = None
) -> list[events.AnyEvent]:
    return list(exhaust(harness_run(target), TINY, kinds or KINDS, findings, other))


def test_the_reference_has_no_counterexample(tmp_path: Path) -> None:
    stream = run(reference_target("1.35", KUBELET), tmp_path)
    started, ended = stream[0], stream[-1]
    assert isinstance(started, events.RunStarted)
    assert started.bound == (
        "every assignment on machines of up to 2 CPUs",
        "every merge (2 nodes, 1 provider, up to 2 hints each)",
        "every life (CPU Manager: 2 configurations, up to 2 CPUs and 2 actions)",
    )
    assert isinstance(ended, events.RunEnded)
    assert ended.outcomes.keys() <= {"pass", "expected failure"}
    summary = summarize(stream)
    assert summary.verdict == "passed"
    assert dict(setting(summary))["Bound"] == "; ".join(started.bound)
    assert "no counterexample, bound tiny" in badge(summary)
    assert not list(tmp_path.iterdir())


def greedy(assigned: messages.Assigned) -> messages.Assigned:
    """Assigns a CPU too many if it assigns two."""
    if isinstance(assigned, messages.Assigned) and len(assigned.cpus) == 2:
        return messages.Assigned(assigned.cpus | CPUSet([max(assigned.cpus) + 1]))
    return assigned


def impatient(merged: messages.Merged) -> messages.Merged:
    """Refuses a merged hint that isn't preferred, whatever the policy."""
    return msgspec.structs.replace(merged, admit=merged.hint.preferred)


def forgetful(state: messages.State) -> messages.State:
    """Loses its pods."""
    return msgspec.structs.replace(state, pods={})


@pytest.mark.parametrize(
    ("faults", "kind", "operations"),
    [
        ({"assign": greedy}, "assignments", ["assign"]),
        ({"merge": impatient}, "merges", ["merge"]),
        ({"state": forgetful}, "lives", ["start", "state", "admit", "state"]),
    ],
)
def test_a_fault_is_found_once_with_its_smallest_case(
    faults: Any, kind: str, operations: list[str], tmp_path: Path
) -> None:
    target = target_of(changed_reference(**faults))
    (found,) = found_in(run(target, tmp_path, kind))
    assert [step.operation for step in found.steps] == operations
    assert found.file
    (case,) = loading.read_file(tmp_path / found.file)
    assert replay_case(case, target, tmp_path / "replay").outcome == found.outcome


def test_answers_are_compared_with_another_implementation(tmp_path: Path) -> None:
    target, other = target_of(changed_reference()), target_of(changed_reference(merge=impatient))
    stream = run(target, tmp_path, "merges", "lives", other=replace(other, command=("./other",)))
    assert isinstance(stream[0], events.RunStarted)
    assert stream[0].left == other.hello
    (found,) = found_in(stream)
    assert found.finding
    assert found.finding.source == "other side"
    assert found.reproduce == (
        f"numaproof diff --right ./other --kubernetes {target.kubernetes} {found.file}"
    )


class Ends:
    """A reference that ends when it is asked for the state, up to `times` times."""

    def __init__(self, times: int = 1_000_000) -> None:
        self._reference = changed_reference()
        self._times = times

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        if operation == "state" and self._times:
            self._times -= 1
            raise Crashed("it ended", "")
        return self._reference.call(operation, args)

    def close(self) -> None:
        """Does nothing."""


def test_a_failure_of_the_other_implementation_ends_the_run(tmp_path: Path) -> None:
    target, other = target_of(changed_reference()), target_of(Ends())
    stream = run(target, tmp_path, "lives", other=other)
    assert found_in(stream) == []
    ended = stream[-1]
    assert isinstance(ended, events.RunEnded)
    assert not ended.complete
    assert ended.message == "the program to compare with failed: it ended"


def test_a_program_that_ends_once_is_no_counterexample(tmp_path: Path) -> None:
    assert found_in(run(target_of(Ends(1)), tmp_path, "lives")) == []
    (always,) = found_in(run(target_of(Ends()), tmp_path, "lives"))
    assert always.outcome == "crash"
