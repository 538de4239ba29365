"""Failures that named defects explain, and failures that they don't.

A row of `known_defects.yaml` is a scenario that shows a defect. A row of `explained.yaml` lists
broken invariants in order; `says` has the outcome and the defect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from builders.machines import discover_profile, regular
from builders.tables import Table
from builders.targets import case_of, changed_reference, target_of
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.judging import known_defects
from numaproof.conformance.judging.invariants.view import BrokenInvariant, Violation
from numaproof.protocol.machine import MachineInfo, UncoreCache
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.events import Outcome

LIVES = Table(__file__, "known_defects.yaml")
EXPLAINED = Table(__file__, "explained.yaml")
AVERAGE = "free-core-by-average"
CASE = case_of("steps: [{state: {}}]")


def test_each_release_has_exactly_its_defects() -> None:
    assert AVERAGE in known_defects.known_defects("1.35")
    assert "strict-reservation-empty-pool-refused" not in known_defects.known_defects("1.31")


@LIVES
def test_a_scenario_that_shows_a_defect_fails_as_expected(
    row: dict[str, Any], tmp_path: Path
) -> None:
    case = case_of(yaml.safe_dump(row["case"], sort_keys=False))
    case = msgspec.structs.replace(case, level="invariants")
    assert case.machine is not None
    target = target_of(InProcess(Reference), kubernetes=row["kubernetes"])
    run = Run(target, case, case.machine, None, tmp_path)
    result = run.play()
    said = {"outcome": result.outcome, "defect": result.defect, "message": result.message}
    LIVES.check(row, said)


@pytest.mark.parametrize(
    ("outcome", "has_defect", "verdict"),
    [
        ("fail", True, ("expected failure", AVERAGE)),
        ("pass", True, ("missing expected failure", AVERAGE)),
        ("fail", False, ("fail", None)),
        ("pass", False, ("pass", None)),
        ("unsupported", True, ("unsupported", None)),
    ],
)
def test_a_defects_case_fails_as_expected_in_its_releases(
    outcome: Outcome, has_defect: object, verdict: object
) -> None:
    named = msgspec.structs.replace(CASE, defect=AVERAGE)
    defects = frozenset({AVERAGE} if has_defect else ())
    assert known_defects.judge(outcome, named, (), defects) == verdict


SHOWN = """
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 1, memory: 64Mi}}}}
  expect: {refused: SMTAlignmentError}
"""


@pytest.mark.parametrize(
    ("state", "outcome"),
    [(None, "expected failure"), ("1-3", "fail")],
    ids=["the kubelet's answer", "another wrong answer"],
)
def test_only_the_defects_own_answer_is_an_expected_failure(
    state: str | None, outcome: str, tmp_path: Path
) -> None:
    """Any other wrong answer differs from the reference, which has the same defect."""
    case = msgspec.structs.replace(case_of(SHOWN), defect="reservation-by-best-fit")
    changed = changed_reference(
        state=lambda answer: msgspec.structs.replace(
            answer, shared=CPUSet.parse(state) if state else answer.shared
        )
    )
    target = target_of(changed, oracle=True, baseline="kubelet")
    assert Run(target, case, regular(nodes=2), None, tmp_path).play().outcome == outcome


def broken_invariant(name: str, facts: Facts, call: int = 0, **about: Any) -> BrokenInvariant:
    return BrokenInvariant(Violation(name, "CPU-POOL-005", "it is so", **about), facts, call)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [((1, 1), "expected failure"), ((1, 2), "fail"), ((2, 1), "expected failure")],
)
def test_a_consequence_shows_no_earlier_than_its_cause(
    calls: tuple[int, int], outcome: str
) -> None:
    facts, defect = Facts(regular(nodes=2)), "reusable-memory-outlives-pod"
    names = ("same-state-same-outcome", "memory-file-reserves-for-returned-pods")
    broken = [broken_invariant(name, facts, call) for name, call in zip(names, calls, strict=True)]
    verdict, _ = known_defects.judge("fail", CASE, broken, frozenset({defect}))
    assert verdict == outcome


def test_a_defect_explains_only_its_own_invariants() -> None:
    named = msgspec.structs.replace(CASE, defect=AVERAGE)
    broken = broken_invariant("devices-stay", Facts(regular(nodes=2)))
    verdict = known_defects.judge("fail", named, [broken], frozenset({AVERAGE}))
    assert verdict == ("fail", None)


def machines() -> dict[str, MachineInfo]:
    """The machines on which invariants break."""
    laptop, two = discover_profile("laptop-4c8t"), regular(nodes=2)
    (node,) = laptop.topology or ()
    empty = msgspec.structs.replace(node, node_id=1, memory=0, cores=())
    replace, shared = msgspec.structs.replace, (UncoreCache(0, 1 << 20, "Unified", 3),)
    across = tuple(
        replace(one, cores=tuple(replace(core, uncore_caches=shared) for core in one.cores or ()))
        for one in two.topology or ()
    )
    return {
        "laptop": laptop,
        "hybrid": discover_profile("core-i7-1370p"),
        "more sockets than listed": replace(laptop, num_sockets=2),
        "a node without memory": replace(laptop, topology=(node, empty)),
        "two nodes": two,
        "a cache across nodes": replace(two, topology=across),
    }


@EXPLAINED
def test_a_failure_is_expected_if_defects_explain_all_of_it(
    row: dict[str, Any],
) -> None:
    facts, known = Facts(machines()[row["machine"]]), row["known"]
    of_release = known[:1].isdigit()
    defects = known_defects.known_defects(known) if of_release else frozenset({known})
    about = {"cpus": CPUSet.parse(row.get("cpus", "")), "size": row.get("size", 0)}
    said = {}
    for broken in row["broken"]:
        violations = [
            broken_invariant(one, facts, call, **about)
            for call, one in enumerate(broken.split(", "))
        ]
        outcome, defect = known_defects.judge("fail", CASE, violations, defects)
        said[broken] = f"{outcome}: {defect}" if defect else outcome
    EXPLAINED.check(row, said)
