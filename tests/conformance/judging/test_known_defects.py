"""Named defects: whose failures are expected, and whose are not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from builders.machines import discovered
from builders.targets import target_of
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.judging import known_defects
from numaproof.conformance.judging.invariants import Violation
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.events import Outcome
    from numaproof.protocol.machine import MachineInfo

AVERAGE = frozenset({"free-core-by-average"})
TWICE = Violation("shared-or-exclusive", "CPU-POOL-005", "CPU 3 is both")
LOST = Violation("no-cpu-lost", "CPU-POOL-007", "CPU 3 is gone")


@pytest.fixture(scope="module")
def hybrid() -> Facts:
    return Facts(discovered("core-i7-1370p"))


@pytest.fixture
def case(make_case: Callable[[str], Case]) -> Case:
    return make_case("steps: [{state: {}}]")


def test_the_kubelet_of_a_release_has_its_defects_and_no_others() -> None:
    assert "free-core-by-average" in known_defects.known_defects("1.35")
    assert "strict-reservation-empty-pool-refused" not in known_defects.known_defects("1.31")


@pytest.mark.parametrize(
    ("outcome", "known", "judged"),
    [
        ("fail", AVERAGE, ("expected failure", "free-core-by-average")),
        ("pass", AVERAGE, ("missing expected failure", "free-core-by-average")),
        ("fail", frozenset(), ("fail", None)),
        ("pass", frozenset(), ("pass", None)),
        ("unsupported", AVERAGE, ("unsupported", None)),
    ],
)
def test_a_case_that_names_a_defect_fails_as_expected_where_the_defect_is(
    case: Case, outcome: Outcome, known: frozenset[str], judged: object
) -> None:
    named = msgspec.structs.replace(case, defect="free-core-by-average")
    assert known_defects.judge(outcome, named, (), known) == judged


def test_a_broken_invariant_is_expected_where_a_defect_explains_it(
    case: Case, hybrid: Facts
) -> None:
    expected = ("expected failure", "free-core-by-average")
    assert known_defects.judge("fail", case, ((TWICE, hybrid),), AVERAGE) == expected
    assert known_defects.judge("fail", case, ((TWICE, hybrid),), frozenset()) == ("fail", None)


def test_a_refused_pod_may_give_back_what_is_anothers_but_not_keep_anything(
    hybrid: Facts, info: MachineInfo
) -> None:
    grown = Violation("refusal-leaves-nothing", "CPU-REMOVE-004", "the pool grew")
    kept = replace(grown, cpus=CPUSet.parse("3"))
    assert known_defects.explain(grown, hybrid, AVERAGE) == "free-core-by-average"
    assert known_defects.explain(grown, Facts(info), AVERAGE) is None
    assert known_defects.explain(kept, hybrid, AVERAGE) is None


def test_sockets_that_are_counted_and_not_listed_spoil_an_average(info: MachineInfo) -> None:
    reserved = Violation("reserved-never-exclusive", "CPU-RESERVE-008", "CPU 3 is reserved")
    miscounted = msgspec.structs.replace(info, num_sockets=info.num_sockets + 1)
    assert known_defects.explain(reserved, Facts(miscounted), AVERAGE) == "free-core-by-average"
    assert known_defects.explain(reserved, Facts(info), AVERAGE) is None


PARTLY = """
machine:
  num_cores: 5
  num_physical_cores: 5
  num_sockets: 2
  memory_capacity: 2147483648
  topology:
  - {node_id: 0, memory: 1073741824, cores: [{core_id: 0, thread_ids: [0], socket_id: 0},
      {core_id: 1, thread_ids: [1], socket_id: 0}]}
  - {node_id: 1, memory: 1073741824, cores: [{core_id: 0, thread_ids: [3], socket_id: 1},
      {core_id: 1, thread_ids: [4], socket_id: 1}, {core_id: 2, thread_ids: [5], socket_id: 1}]}
steps:
- assign: {available: "0,4-5", count: 3}
- start: {offline: "5"}
"""


def test_what_was_broken_is_judged_by_the_machine_as_it_was_then(
    make_case: Callable[[str], Case], tmp_path: Path
) -> None:
    # By its averages every socket has two CPUs, and without CPU 5 that is true.
    case = msgspec.structs.replace(make_case(PARTLY), level="invariants")
    target = target_of(InProcess(Reference), kubernetes="1.36")
    assert case.machine is not None
    run = Run(target, case, case.machine, None, tmp_path)
    results = [run.judge(partial(run.player.step, step)) for step in case.steps]
    assert {(one.outcome, one.defect) for one in results} == {
        ("expected failure", "free-core-by-average")
    }
    assert Facts(run.player.session.machine).properties["uniform"]


EXACT = """
machine:
  num_cores: 12
  num_physical_cores: 6
  num_sockets: 2
  memory_capacity: 2147483648
  topology:
  - {node_id: 0, memory: 1073741824, cores: [{core_id: 0, thread_ids: [0, 6], socket_id: 0},
      {core_id: 1, thread_ids: [1, 7], socket_id: 0}, {core_id: 2, thread_ids: [2, 8],
      socket_id: 0}]}
  - {node_id: 1, memory: 1073741824, cores: [{core_id: 0, thread_ids: [3, 9], socket_id: 1},
      {core_id: 1, thread_ids: [4, 10], socket_id: 1}, {core_id: 2, thread_ids: [5, 11],
      socket_id: 1}]}
config: {cpuManagerPolicy: static, reservedSystemCPUs: "2,10-11",
    cpuManagerPolicyOptions: {full-pcpus-only: "true"}, topologyManagerPolicy: best-effort}
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}
  expect: anything
- admit: {pod: b, containers: {app: {limits: {cpu: 4, memory: 64Mi}}}}
  expect: anything
- remove: a
  expect: anything
"""


NO_WHOLE_CORE = """
machine:
  num_cores: 16
  num_physical_cores: 4
  num_sockets: 2
  memory_capacity: 2147483648
  topology:
  - {node_id: 0, memory: 1073741824, cores: [{core_id: 0, thread_ids: [0, 1, 2, 3], socket_id: 0},
      {core_id: 1, thread_ids: [4, 5, 6, 7], socket_id: 0}]}
  - {node_id: 1, memory: 1073741824, cores: [{core_id: 0, thread_ids: [8, 9, 10, 11],
      socket_id: 1}, {core_id: 1, thread_ids: [12, 13, 14, 15], socket_id: 1}]}
config: {cpuManagerPolicy: static, reservedSystemCPUs: "3-4,9",
    cpuManagerPolicyOptions: {full-pcpus-only: "true"}, topologyManagerPolicy: best-effort}
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 4, memory: 64Mi}}}}
  expect: anything
"""


@pytest.mark.parametrize("text", [EXACT, NO_WHOLE_CORE])
def test_cores_may_be_split_where_the_affinity_has_too_few_whole_ones(
    make_case: Callable[[str], Case], tmp_path: Path, text: str
) -> None:
    # The real 1.37 does it, too.
    case = msgspec.structs.replace(make_case(text), level="invariants")
    assert case.machine is not None
    run = Run(
        target_of(InProcess(Reference), kubernetes="1.37"), case, case.machine, None, tmp_path
    )
    result = run.play()
    splits = "full-pcpus-only-splits-cores-at-affinity"
    assert (result.outcome, result.defect) == ("expected failure", splits)


AGAIN = """
machine:
  num_cores: 1
  num_physical_cores: 1
  num_sockets: 1
  memory_capacity: 2147483648
  topology:
  - {node_id: 0, memory: 1073741824, cores: [{core_id: 0, thread_ids: [0], socket_id: 0}]}
  - {node_id: 1, memory: 1073741824, cores: []}
config: {memoryManagerPolicy: Static, kubeReserved: {memory: 156Mi},
    reservedMemory: [{numaNode: 1, limits: {memory: 256Mi}}]}
steps:
- admit: {pod: a, init: {first: {limits: {cpu: 1, memory: 1Gi}},
      second: {limits: {cpu: 1, memory: 512Mi}}}}
  expect: anything
- remove: {pod: a, container: second}
  expect: anything
- start: {}
  expect: anything
"""


def test_an_init_container_that_is_served_again_takes_from_one_before_it(
    make_case: Callable[[str], Case], tmp_path: Path
) -> None:
    # The real 1.37 does it, too.
    case = msgspec.structs.replace(make_case(AGAIN), level="invariants")
    assert case.machine is not None
    target = target_of(InProcess(Reference), kubernetes="1.37")
    result = Run(target, case, case.machine, None, tmp_path).play()
    assert (result.outcome, result.defect) == ("expected failure", "ended-init-served-again")


def test_another_cause_stays_a_failure(case: Case, hybrid: Facts, info: MachineInfo) -> None:
    assert known_defects.judge("fail", case, ((LOST, hybrid),), AVERAGE) == ("fail", None)
    assert known_defects.judge("fail", case, ((TWICE, hybrid), (LOST, hybrid)), AVERAGE) == (
        "fail",
        None,
    )
    assert known_defects.judge("fail", case, ((TWICE, Facts(info)),), AVERAGE) == ("fail", None)
    assert known_defects.judge("fail", case, (), AVERAGE) == ("fail", None)


GROUPS = frozenset({"single-node-taken-out-of-group", "reservation-beyond-node-wraps"})
ALONE = Violation("memory-node-alone-or-in-group", "MEM-GROUP-001", "node 1 is used alone too")
WRAPPED = Violation(
    "memory-allocatable-but-reserved", "MEM-RESERVE-001", "too much", size=2**64 - 1
)
SUMS = Violation("memory-file-adds-up", "NODE-STATE-002", "the sums differ")


@pytest.mark.parametrize(
    ("first", "name"),
    [(ALONE, "single-node-taken-out-of-group"), (WRAPPED, "reservation-beyond-node-wraps")],
)
def test_what_follows_from_a_defect_is_explained_by_it_once_it_was_met(
    case: Case, info: MachineInfo, first: Violation, name: str
) -> None:
    facts = Facts(info)

    def on(*violations: Violation) -> list[tuple[Violation, Facts]]:
        return [(one, facts) for one in violations]

    assert known_defects.judge("fail", case, on(first, SUMS), GROUPS) == ("expected failure", name)
    assert known_defects.judge("fail", case, on(SUMS, first), GROUPS) == ("fail", None)
    assert known_defects.judge("fail", case, on(first, LOST), GROUPS) == ("fail", None)
    assert known_defects.judge("fail", case, on(first, SUMS), frozenset()) == ("fail", None)


@pytest.mark.parametrize(
    "invariant",
    [
        "memory-node-alone-or-in-group",
        "memory-node-in-use-joins-no-group",
        "memory-groups-disjoint",
        "memory-file-counts-blocks",
    ],
)
def test_an_affinity_that_is_taken_as_it_is_explains_whatever_shows_the_broken_group(
    info: MachineInfo, invariant: str
) -> None:
    known = known_defects.known_defects("1.31")
    broken = Violation(invariant, "MEM-GROUP-001", "the group and the node disagree")
    assert known_defects.explain(broken, Facts(info), known) == "affinity-breaks-group"
    newer = known_defects.known_defects("1.37")
    assert known_defects.explain(broken, Facts(info), newer) != "affinity-breaks-group"


def test_a_reservation_that_is_too_small_by_less_is_no_wrapped_number(info: MachineInfo) -> None:
    small = replace(WRAPPED, size=4096)
    assert known_defects.explain(small, Facts(info), GROUPS) is None


@pytest.mark.parametrize(
    ("invariant", "name"),
    [
        ("refusal-keeps-groups", "single-node-taken-out-of-group"),
        ("memory-file-counts-blocks", None),
        ("memory-node-in-use-joins-no-group", None),
        ("exclusive-set-of-budget-stays", "pod-level-cpus-taken-anew"),
        ("memory-of-budget-stays", "pod-level-cpus-taken-anew"),
        ("no-cpu-lost-by-budgets", "pod-level-cpus-taken-anew"),
        ("memory-file-counts-blocks-of-budgets", "pod-level-cpus-taken-anew"),
        ("exclusive-set-stays", None),
        ("no-cpu-lost", None),
    ],
)
def test_a_defect_explains_what_follows_from_it_by_its_own_name(
    info: MachineInfo, invariant: str, name: str | None
) -> None:
    known = known_defects.known_defects("1.37")
    broken = Violation(invariant, "NODE-STATE-002", "it is so")
    assert known_defects.explain(broken, Facts(info), known) == name


NODES = """
machine:
  num_cores: 6
  num_physical_cores: 6
  num_sockets: 2
  memory_capacity: 3221225472
  topology:
  - {node_id: 0, memory: 1073741824, distances: [10, 21, 21], cores: [
      {core_id: 0, thread_ids: [0], socket_id: 0}, {core_id: 1, thread_ids: [1], socket_id: 0}]}
  - {node_id: 1, memory: 1073741824, distances: [21, 10, 12], cores: [
      {core_id: 0, thread_ids: [2], socket_id: 1}, {core_id: 1, thread_ids: [3], socket_id: 1},
      {core_id: 2, thread_ids: [4], socket_id: 1}, {core_id: 3, thread_ids: [5], socket_id: 1}]}
  - {node_id: 2, memory: 1073741824, distances: [21, 12, 10], cores: []}
"""
CONFIG = """
config:
  cpuManagerPolicy: static
  reservedSystemCPUs: "0"
  memoryManagerPolicy: Static
  kubeReserved: {memory: 28Mi}
  evictionHard: {memory.available: 100Mi}
  reservedMemory: [{numaNode: 0, limits: {memory: 128Mi}}]
  topologyManagerPolicy: best-effort
  featureGates: {PodLevelResourceManagers: true}
"""
GROUP_LOST = """
steps:
- {admit: {pod: a, containers: {app: {limits: {cpu: 3, memory: 1040Mi}}}}, expect: anything}
- admit:
    pod: b
    init:
      setup: {limits: {cpu: 2, memory: 128Mi}}
      never: {limits: {cpu: 2, memory: 4Gi}}
  expect: anything
"""
CPUS_ANEW = """
  topologyManagerScope: pod
steps:
- admit: {pod: a, resources: {limits: {cpu: 1, memory: 64Mi}}, containers: {app: {}}}
  expect: anything
- {start: {}, expect: anything}
"""
CPUS_LOST = """
  topologyManagerScope: pod
steps:
- admit: {pod: a, resources: {limits: {cpu: 1, memory: 512Mi}}, containers: {app: {}}}
  expect: anything
- {start: {}, expect: anything}
"""


@pytest.mark.parametrize(
    ("steps", "broken", "name"),
    [
        (GROUP_LOST, "refusal-keeps-groups", "single-node-taken-out-of-group"),
        (CPUS_ANEW, "exclusive-set-of-budget-stays", "pod-level-cpus-taken-anew"),
        (CPUS_LOST, "no-cpu-lost-by-budgets", "pod-level-cpus-taken-anew"),
    ],
)
def test_a_life_in_which_a_defect_shows_only_by_what_follows_is_expected_to_fail(
    make_case: Callable[[str], Case], tmp_path: Path, steps: str, broken: str, name: str
) -> None:
    case = msgspec.structs.replace(make_case(NODES + CONFIG + steps), level="invariants")
    assert case.machine is not None
    run = Run(
        target_of(InProcess(Reference), kubernetes="1.37"), case, case.machine, None, tmp_path
    )
    result = run.play()
    assert (result.outcome, result.defect) == ("expected failure", name)
    assert broken in result.message


def test_a_group_with_a_node_without_memory_shows_the_broken_group_in_the_file_alone(
    info: MachineInfo,
) -> None:
    known = frozenset({"single-node-taken-out-of-group"})
    counted = Violation("memory-file-counts-blocks", "NODE-STATE-002", "says 1 with [1]")
    (node,) = info.topology or ()
    empty = msgspec.structs.replace(node, node_id=1, memory=0, cores=())
    with_empty = msgspec.structs.replace(info, topology=(node, empty))
    assert known_defects.explain(counted, Facts(with_empty), known) == (
        "single-node-taken-out-of-group"
    )
    assert known_defects.explain(counted, Facts(info), known) is None


def test_memory_that_a_pod_with_a_budget_took_anew_is_missed_in_the_file_later(
    case: Case, info: MachineInfo
) -> None:
    known = known_defects.known_defects("1.37")
    facts = Facts(info)
    anew = Violation("memory-of-budget-stays", "MEM-STATIC-012", "it had others")
    counted = Violation("memory-file-counts-blocks", "NODE-STATE-002", "says 1 with [0]")
    expected = ("expected failure", "pod-level-cpus-taken-anew")
    assert known_defects.judge("fail", case, ((anew, facts), (counted, facts)), known) == expected
    assert known_defects.judge("fail", case, ((counted, facts),), known) == ("fail", None)
