"""Relations between answers find what no other invariant shows."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import msgspec
import pytest

from builders.machines import regular
from builders.targets import case_of, changed_reference, target_of
from numaproof.conformance.execution.run import Run
from numaproof.protocol.sets import CPUSet
from quality.catalogue import BUGS

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.protocol import messages
    from numaproof.protocol.machine import MachineInfo

HEAD = """
config:
  cpuManagerPolicy: static
  memoryManagerPolicy: Static
  kubeReserved: {cpu: 1, memory: 28Mi}
  reservedMemory: [{numaNode: 0, limits: {memory: 128Mi}}]
steps:
"""
REMOVED = f"""{HEAD}
- admit: {{pod: a, containers: {{app: {{limits: {{cpu: 1, memory: 600Mi}}}}}}}}
  expect: anything
- remove: a
  expect: anything
- admit: {{pod: b, containers: {{app: {{limits: {{cpu: 1, memory: 600Mi}}}}}}}}
  expect: anything
"""
RESTARTED = f"""{HEAD}
- admit: {{pod: a, containers: {{app: {{limits: {{cpu: 1, memory: 600Mi}}}}}}}}
  expect: anything
- start: {{}}
  expect: anything
"""
ALIGNED = HEAD.replace("config:", "config:\n  topologyManagerPolicy: best-effort")
GROUPED = f"""{ALIGNED}
- admit: {{pod: filling, containers: {{app: {{limits: {{cpu: 1, memory: 2943Mi}}}}}}}}
- admit: {{pod: a, containers: {{app: {{limits: {{cpu: 3, memory: 1Mi}}}}}}}}
- remove: a
- admit: {{pod: b, containers: {{app: {{limits: {{cpu: 3, memory: 1Mi}}}}}}}}
  expect: anything
"""


def broken(
    implementation: Implementation,
    steps: str,
    scratch: Path,
    machine: MachineInfo = regular(nodes=1),  # noqa: B008 - immutable
) -> set[str]:
    """Returns the invariants that a program breaks at the lowest level."""
    target = target_of(implementation, level="invariants", oracle=True, baseline="documented")
    run = Run(target, case_of(steps), machine, None, scratch)
    run.play()
    return {one.invariant for one in run.player.violations}


def seeded(name: str) -> Implementation:
    (bug,) = [bug for bug in BUGS if bug.id == name]
    return bug.implementation(follows_docs=True)


@pytest.mark.parametrize(
    ("bug", "steps", "invariant"),
    [
        ("removed-pods-keep-their-memory", REMOVED, "same-state-same-outcome"),
        ("memory-is-taken-again-for-a-pod-that-has-it", RESTARTED, "restart-admits-again"),
    ],
)
def test_only_a_relation_shows_a_bug(bug: str, steps: str, invariant: str, tmp_path: Path) -> None:
    assert broken(seeded(bug), steps, tmp_path) == {invariant}


def test_a_restart_reports_the_same_reservation(tmp_path: Path) -> None:
    numbers = count()

    def reserving_others(answer: messages.Started) -> messages.Started:
        others = CPUSet([next(numbers)])
        cpus = msgspec.structs.replace(answer.cpus, allocatable=answer.cpus.all - others)
        return msgspec.structs.replace(answer, cpus=cpus)

    steps = f"{HEAD}- start: {{}}\n  expect: anything\n- start: {{}}\n  expect: anything\n"
    found = broken(changed_reference(start=reserving_others), steps, tmp_path)
    assert found == {"restart-reports-the-same"}


@pytest.mark.parametrize("steps", [REMOVED, RESTARTED])
def test_a_correct_program_breaks_no_relation(steps: str, tmp_path: Path) -> None:
    assert broken(changed_reference(), steps, tmp_path) == set()


def test_free_memory_moves_within_a_group(tmp_path: Path) -> None:
    first, second, third = regular(nodes=3, cores=3, threads=1).topology or ()
    without_cpus = msgspec.structs.replace(third, cores=())
    machine = msgspec.structs.replace(
        regular(nodes=3, cores=3, threads=1), topology=(first, second, without_cpus)
    )
    assert broken(changed_reference(), GROUPED, tmp_path, machine) == set()
