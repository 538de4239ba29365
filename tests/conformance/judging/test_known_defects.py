"""Named defects: whose failures are expected, and whose are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from builders.machines import discovered, regular
from builders.tables import Table
from builders.targets import target_of
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.judging import known_defects
from numaproof.conformance.judging.invariants.view import Violation
from numaproof.protocol.machine import UncoreCache
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.events import Outcome
    from numaproof.protocol.machine import MachineInfo

LIVES = Table(__file__, "known_defects.yaml")
AVERAGE, GROUP, WRAPS, ANEW = (
    "free-core-by-average",
    "single-node-taken-out-of-group",
    "reservation-beyond-node-wraps",
    "pod-level-cpus-taken-anew",
)


def broken(invariant: str, **more: Any) -> Violation:
    return Violation(invariant, "CPU-POOL-005", "it is so", **more)


@pytest.fixture(scope="module")
def hybrid() -> Facts:
    return Facts(discovered("core-i7-1370p"))


@pytest.fixture
def case(make_case: Callable[[str], Case]) -> Case:
    return make_case("steps: [{state: {}}]")


def test_the_kubelet_of_a_release_has_its_defects_and_no_others() -> None:
    assert AVERAGE in known_defects.known_defects("1.35")
    assert "strict-reservation-empty-pool-refused" not in known_defects.known_defects("1.31")


@LIVES
def test_a_life_in_which_a_defect_shows_is_expected_to_fail(
    row: dict[str, Any], make_case: Callable[[str], Case], tmp_path: Path
) -> None:
    case = msgspec.structs.replace(
        make_case(yaml.safe_dump(row["case"], sort_keys=False)), level="invariants"
    )
    assert case.machine is not None
    target = target_of(InProcess(Reference), kubernetes=row["kubernetes"])
    run = Run(target, case, case.machine, None, tmp_path)
    result = run.play()
    said = {"outcome": result.outcome, "defect": result.defect, "message": result.message}
    LIVES.check(row, said)


@pytest.mark.parametrize(
    ("outcome", "known", "judged"),
    [
        ("fail", True, ("expected failure", AVERAGE)),
        ("pass", True, ("missing expected failure", AVERAGE)),
        ("fail", False, ("fail", None)),
        ("pass", False, ("pass", None)),
        ("unsupported", True, ("unsupported", None)),
    ],
)
def test_a_case_that_names_a_defect_fails_as_expected_where_the_defect_is(
    case: Case, outcome: Outcome, known: object, judged: object
) -> None:
    named = msgspec.structs.replace(case, defect=AVERAGE)
    defects = frozenset({AVERAGE} if known else ())
    assert known_defects.judge(outcome, named, (), defects) == judged


BY_AVERAGE = ("refusal-leaves-nothing", "shared-or-exclusive")


@pytest.mark.parametrize("invariant", BY_AVERAGE)
def test_averages_are_wrong_on_uneven_machines_alone(
    invariant: str, hybrid: Facts, info: MachineInfo
) -> None:
    known = frozenset({AVERAGE})
    assert known_defects.explain(broken(invariant), hybrid, known) == AVERAGE
    assert known_defects.explain(broken(invariant), Facts(info), known) is None
    # A refused pod may give back what is another's, but not keep anything.
    kept = broken("refusal-leaves-nothing", cpus=CPUSet.parse("3"))
    assert known_defects.explain(kept, hybrid, known) is None
    # Sockets that are counted and not listed spoil an average, too.
    miscounted = Facts(msgspec.structs.replace(info, num_sockets=info.num_sockets + 1))
    reserved = broken("reserved-never-exclusive")
    assert known_defects.explain(reserved, miscounted, known) == AVERAGE
    assert known_defects.explain(reserved, Facts(info), known) is None


@pytest.mark.parametrize(
    ("violations", "known", "defect"),
    [
        (["shared-or-exclusive"], AVERAGE, AVERAGE),
        (["shared-or-exclusive"], "", None),
        (["no-cpu-lost"], AVERAGE, None),
        (["shared-or-exclusive", "no-cpu-lost"], AVERAGE, None),
        ([], AVERAGE, None),
        # What follows from a defect is explained by it once it was met.
        (["memory-node-alone-or-in-group", "memory-file-adds-up"], GROUP, GROUP),
        (["memory-file-adds-up", "memory-node-alone-or-in-group"], GROUP, None),
        (["memory-node-alone-or-in-group", "no-cpu-lost"], GROUP, None),
        (["memory-node-alone-or-in-group", "memory-file-adds-up"], "", None),
        (["memory-allocatable-but-reserved", "memory-file-adds-up"], WRAPS, WRAPS),
        (["memory-of-budget-stays", "memory-file-counts-blocks"], ANEW, ANEW),
        (["memory-file-counts-blocks"], ANEW, None),
    ],
)
def test_a_failure_is_expected_where_defects_explain_all_that_is_broken(
    case: Case, hybrid: Facts, violations: list[str], known: str, defect: str | None
) -> None:
    on = [(broken(one, size=2**64 - 1), hybrid) for one in violations]
    judged = known_defects.judge("fail", case, on, frozenset({known} if known else ()))
    assert judged == ("expected failure" if defect else "fail", defect)


@pytest.mark.parametrize(
    ("invariant", "kubernetes", "defect"),
    [
        ("memory-node-alone-or-in-group", "1.31", "affinity-breaks-group"),
        ("memory-node-in-use-joins-no-group", "1.31", "affinity-breaks-group"),
        ("memory-groups-disjoint", "1.31", "affinity-breaks-group"),
        ("memory-file-counts-blocks", "1.31", "affinity-breaks-group"),
        ("memory-node-alone-or-in-group", "1.37", GROUP),
        ("refusal-keeps-groups", "1.37", GROUP),
        ("memory-file-counts-blocks", "1.37", None),
        ("memory-node-in-use-joins-no-group", "1.37", None),
        ("exclusive-set-of-budget-stays", "1.37", ANEW),
        ("memory-of-budget-stays", "1.37", ANEW),
        ("no-cpu-lost-by-budgets", "1.37", ANEW),
        ("memory-file-counts-blocks-of-budgets", "1.37", ANEW),
        ("exclusive-set-stays", "1.37", None),
        ("no-cpu-lost", "1.37", None),
    ],
)
def test_a_defect_explains_what_follows_from_it_by_its_own_name(
    info: MachineInfo, invariant: str, kubernetes: str, defect: str | None
) -> None:
    known = known_defects.known_defects(kubernetes)
    assert known_defects.explain(broken(invariant), Facts(info), known) == defect


def test_a_reservation_that_is_too_small_by_less_is_no_wrapped_number(info: MachineInfo) -> None:
    small = broken("memory-allocatable-but-reserved", size=4096)
    known = frozenset({WRAPS})
    assert known_defects.explain(small, Facts(info), known) is None
    assert known_defects.explain(replace(small, size=2**64 - 1), Facts(info), known) == WRAPS


def test_a_group_with_a_node_without_memory_shows_the_broken_group_in_the_file_alone(
    info: MachineInfo,
) -> None:
    known, counted = frozenset({GROUP}), broken("memory-file-counts-blocks")
    (node,) = info.topology or ()
    empty = msgspec.structs.replace(node, node_id=1, memory=0, cores=())
    with_empty = msgspec.structs.replace(info, topology=(node, empty))
    assert known_defects.explain(counted, Facts(with_empty), known) == GROUP
    assert known_defects.explain(counted, Facts(info), known) is None


def test_a_cache_across_nodes_explains_too_few_exclusive_cpus() -> None:
    machine = regular(nodes=2)
    shared = (UncoreCache(0, 1 << 20, "Unified", 3),)
    nodes = tuple(
        msgspec.structs.replace(
            node,
            cores=tuple(
                msgspec.structs.replace(core, uncore_caches=shared) for core in node.cores or ()
            ),
        )
        for node in machine.topology or ()
    )
    known, few = frozenset({"uncore-across-nodes-counted-twice"}), broken("exclusive-count")
    across = Facts(msgspec.structs.replace(machine, topology=nodes))
    assert known_defects.explain(few, across, known) == "uncore-across-nodes-counted-twice"
    assert known_defects.explain(few, Facts(machine), known) is None
