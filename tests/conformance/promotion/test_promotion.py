"""Findings that become cases: what is expected of them, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from numaproof.conformance import promotion
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.schema import Case, Expected
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.fuzzing.strategies import seeded_scenario
from numaproof.conformance.promotion import PromotionError, Wanted, promote
from numaproof.conformance.requirements import load_registry
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference
from quality.catalogue import BUGS
from quality.suite import target as target_of

REGISTRY = load_registry()
REFERENCE = target_of(InProcess(lambda: Reference(documented=True)))
BUG = {bug.id: bug for bug in BUGS}

FOUND = """\
cases:
- id: fuzz
  title: the shared pool was 0,2 and is 0 [nothing-is-lost]
  requirements: [CPU-REMOVE-001]
  level: invariants
  machine:
    num_cores: 4
    num_physical_cores: 2
    num_sockets: 1
    memory_capacity: 1073741824
    hugepages: []
    topology:
    - node_id: 0
      memory: 1073741824
      hugepages: []
      distances: [10]
      cores:
      - {core_id: 0, thread_ids: [0, 2], socket_id: 0}
      - {core_id: 1, thread_ids: [1, 3], socket_id: 0}
  steps:
"""

START = """\
  - start: {config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}}
    expect: anything
"""

ADMIT = """\
  - admit: {pod: a, containers: {app: {limits: {cpu: "2", memory: 64Mi}}}}
    expect: anything
"""


def finding(*steps: str) -> Case:
    (case,) = loading.parse(FOUND + "".join(steps), "finding.yaml")
    return case


def wanted(level: Level | None = None, **about: Any) -> Wanted:
    return Wanted("static-whole-core", None, (), NEWEST, level, **about)


def promoted(case: Case, level: Level | None = None, bug: str | None = None) -> Case:
    target = target_of(BUG[bug].implementation(), compared=True) if bug else None
    return promote(case, wanted(level), REGISTRY, (), target).case


def expected(case: Case, number: int = -1) -> Expected:
    expect = case.steps[number].expect
    assert isinstance(expect, Expected)
    return expect


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_promoted_is_passed_by_the_reference(seed: int, level: Level) -> None:
    scenario = seeded_scenario(seed, REFERENCE.capabilities)
    scenario = msgspec.structs.replace(scenario, requirements=("CPU-STATIC-001",))
    try:
        case = promoted(scenario, level)
    except PromotionError as error:
        assert "name the --defect" in str(error)  # noqa: PT017 - the other outcome there is
        return
    (read,) = loading.parse(promotion.appended("", case, "mine.yaml"), "mine.yaml")
    assert read == case
    assert read.machine
    with scratch_folder() as scratch:
        assert Run(REFERENCE, read, read.machine, None, scratch / "case").play().good


def test_the_last_step_is_expected_in_full_and_those_before_it_to_be_accepted() -> None:
    case = promoted(finding(START, ADMIT), "placement")
    assert case.level == "placement"
    assert [step.verb for step in case.steps] == ["start", "admit", "state"]
    assert expected(case, 0) == Expected()
    assert expected(case, 1).containers["app"].exclusive == "1,3"
    state = expected(case)
    assert state.shared == "0,2"
    assert state.pods
    assert state.pods["a"]["app"].exclusive == "1,3"


@pytest.mark.parametrize(("level", "exclusive"), [("placement", "1,3"), ("admission", 2)])
def test_below_placement_sets_become_counts(level: Level, exclusive: str | int) -> None:
    state = expected(promoted(finding(START, ADMIT), level))
    assert state.pods
    assert state.pods["a"]["app"].exclusive == exclusive


def test_a_broken_invariant_is_promoted_for_implementations_that_claim_no_more() -> None:
    case = promoted(finding(START, ADMIT))
    assert case.level == "invariants"
    assert expected(case).containers["app"].exclusive == 2


def test_where_placement_decides_what_is_accepted_no_answer_is_expected_of_invariants() -> None:
    aligned = START.replace("{cpuM", "{topologyManagerPolicy: restricted, cpuM")
    case = promoted(finding(aligned, ADMIT))
    assert [step.expect for step in case.steps] == ["anything", "anything"]


def test_a_difference_without_a_broken_invariant_is_expected_at_placement() -> None:
    case = msgspec.structs.replace(finding(START, ADMIT), requirements=())
    said = Wanted("static-x", "A sentence", ("CPU-STATIC-009",), NEWEST)
    made = promote(case, said, REGISTRY, (), None).case
    assert (made.level, made.title) == ("placement", "A sentence")


def test_the_title_is_the_statement_of_the_first_requirement_unless_said() -> None:
    rows = REGISTRY.by_id()
    assert promoted(finding(START)).title == rows["CPU-REMOVE-001"].statement.removesuffix(".")


REFUSED = ADMIT.replace('"2"', '"4"')


@pytest.mark.parametrize(
    ("bug", "steps", "level"),
    [
        ("removed-pods-keep-their-cpus", (START, ADMIT, "  - remove: a\n"), "invariants"),
        ("single-threads-come-before-whole-cores", (START, ADMIT), "placement"),
        ("a-refused-affinity-is-unexpected", (START, REFUSED), None),
    ],
)
def test_with_an_implementation_the_level_is_the_lowest_at_which_it_fails(
    bug: str, steps: tuple[str, ...], level: Level | None
) -> None:
    if level is None:
        with pytest.raises(PromotionError, match="passes it at level kubelet: there is no failure"):
            promoted(finding(*steps), None, bug)
        return
    case = promoted(finding(*steps), None, bug)
    assert case.level == level
    assert case.machine
    buggy = target_of(BUG[bug].implementation())
    with scratch_folder() as scratch:
        assert not Run(buggy, case, case.machine, None, scratch / "buggy").play().good
        assert Run(REFERENCE, case, case.machine, None, scratch / "healthy").play().good


def test_what_only_the_comparison_with_the_reference_shows_is_kept_too() -> None:
    bug = "single-threads-come-before-whole-cores"
    case = promoted(finding(START, ADMIT), "admission", bug)
    assert case.level == "admission"


def test_a_level_that_the_implementation_does_not_claim_is_refused() -> None:
    target = msgspec.structs.replace(REFERENCE.hello, level="admission")
    lesser = type(REFERENCE)(REFERENCE.implementation, target, NEWEST, "admission")
    with pytest.raises(PromotionError, match="claims level admission, at which"):
        promote(finding(START), wanted("kubelet"), REGISTRY, (), lesser)


def test_a_refusal_is_expected_with_its_reason_and_from_kubelet_on_its_text() -> None:
    step = expected(promoted(finding(START, REFUSED), "admission"), 1)
    assert step == Expected(refused="UnexpectedAdmissionError")
    bad = START.replace('cpu: "1"', 'cpu: "0"')
    start = expected(promoted(finding(bad), "kubelet"))
    assert start.refused == "cpu"
    assert start.message
    assert "unable to determine reserved CPU resources" in start.message


def test_steps_that_are_never_made_and_pods_that_are_not_there_are_left_out() -> None:
    bad = START.replace('cpu: "1"', 'cpu: "0"')
    again = START.replace("{config", "{gone: [a, b], config")
    case = promoted(finding(bad, ADMIT, START, ADMIT, again), "admission")
    assert [step.verb for step in case.steps] == ["start", "start", "admit", "start", "state"]
    assert case.steps[3].start
    assert case.steps[3].start.gone == ("a",)


def test_what_somebody_has_written_as_expected_stays() -> None:
    own = ADMIT.replace("anything", "{containers: {app: {exclusive: 2}}}")
    case = promoted(finding(START, own), "placement")
    assert expected(case, 1).containers["app"].exclusive == 2


MEMORY = START.replace(
    "{cpuM",
    "{topologyManagerPolicy: restricted, memoryManagerPolicy: Static,"
    " reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}], cpuM",
).replace("}}\n", "}, devices: {vendor.example/nic: [[0], [0]]}}\n")
DEVICE = ADMIT.replace("64Mi", "64Mi, vendor.example/nic: 1")
HINTS = "  - hints: {pod: a, container: app}\n    expect: anything\n"
RECONCILE = "  - reconcile: {}\n    expect: anything\n"
ASSIGN = '  - assign: {available: "0-3", count: 2}\n    expect: anything\n'
MERGE = (
    "  - merge: {nodes: [0], policy: restricted, providers: [{cpu: []}]}\n    expect: anything\n"
)
PREFERRED = {"numa": [0], "preferred": True}


@pytest.mark.parametrize(
    ("steps", "counted", "exact"),
    [
        (
            (MEMORY,),
            {"all": 4, "allocatable": 3, "memory": {"memory": 968884224}},
            {
                "all": "0-3",
                "allocatable": "1-3",
                "memory": [{"numa": [0], "size": 968884224}],
            },
        ),
        (
            (MEMORY, DEVICE),
            {
                "containers": {
                    "app": {
                        "exclusive": 2,
                        "memory": {"memory": 67108864},
                        "devices": {"vendor.example/nic": 1},
                    }
                }
            },
            {
                "containers": {
                    "app": {
                        "exclusive": "1,3",
                        "affinity": PREFERRED,
                        "memory": [{"numa": [0], "size": 67108864}],
                        "devices": {"vendor.example/nic": {"numa": [[0]]}},
                    }
                }
            },
        ),
        (
            (START, ADMIT, HINTS),
            {},
            {"hints": {"cpu": {"cpu": [PREFERRED]}, "memory": {}}},
        ),
        (
            (START, ADMIT.replace("{app: {", "{b: {}, app: {"), RECONCILE),
            {},
            {
                "updates": [
                    {"pod": "a", "container": "b", "cpus": "shared"},
                    {"pod": "a", "container": "app", "cpus": "shared"},
                ]
            },
        ),
        ((ASSIGN,), {"cpus": 2}, {"cpus": "0,2"}),
        ((MERGE,), {"admit": False}, {"admit": False, "hint": {"numa": [0], "preferred": False}}),
    ],
)
def test_what_is_expected_of_each_answer(
    steps: tuple[str, ...], counted: dict[str, Any], exact: dict[str, Any]
) -> None:
    for level, said in (("admission", counted), ("placement", exact)):
        case = promoted(finding(*steps), level)  # type: ignore[arg-type]
        plain = msgspec.json.encode(expected(case, len(steps) - 1))
        assert msgspec.json.decode(plain) == said


def test_of_a_checkpoint_everything_but_its_checksum_is_expected() -> None:
    files = expected(promoted(finding(START, ADMIT), "kubelet")).files
    assert files["cpu_manager_state"] == {
        "policyName": "static",
        "defaultCpuSet": "0,2",
        "entries": {"uid-a": {"app": "1,3"}},
        "data": '{"policyName":"static","defaultCpuSet":"0,2","entries":{"uid-a":{"app":"1,3"}}}',
    }


def test_an_older_release_can_be_asked_for() -> None:
    said = Wanted("static-x", None, (), "1.34")
    case = promote(finding(START, ADMIT), said, REGISTRY, (), None).case
    assert case.kubernetes == ""


def test_a_case_is_for_the_releases_that_answer_alike() -> None:
    hidden = START.replace(
        "{cpuM", "{cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: 'true'}, cpuM"
    )
    assert promoted(finding(START, ADMIT)).kubernetes == ""
    assert promoted(finding(hidden), "admission").kubernetes == ">= 1.34"


def test_an_admission_alone_is_made_on_a_node_that_was_started_for_it() -> None:
    case = promoted(finding("  - admit: {pod: a, containers: {app: {}}}\n    expect: anything\n"))
    assert [step.verb for step in case.steps] == ["admit"]
    assert expected(case).refused is None


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (
            ("  - remove: {pod: gone, container: app}\n    expect: anything\n",),
            "the reference skips every step",
        ),
        ((START, "  - admit: lost\n"), "case .*, step 2: no earlier step describes the pod lost"),
        (
            (START, REFUSED.replace("anything", "{}")),
            "step 2: the reference goes no further: fail: the outcome\nexpected: success\n",
        ),
    ],
)
def test_what_the_reference_does_not_play_to_its_end_is_refused(
    steps: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises((CaseError, PromotionError), match=complaint):
        promoted(finding(*steps))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Static", "'Static' is no id: write its area"),
        ("static", "'static' is no id"),
        ("static--core", "'static--core' is no id"),
        ("static-taken", "there is a case static-taken already"),
    ],
)
def test_an_id_must_be_in_the_form_and_free(name: str, complaint: str) -> None:
    with pytest.raises(PromotionError, match=complaint):
        promote(finding(START), Wanted(name, None, (), NEWEST), REGISTRY, ["static-taken"], None)


@pytest.mark.parametrize(
    ("requirement", "complaint"),
    [
        ("CPU-REMOV-001", "no requirement CPU-REMOV-001; did you mean .*CPU-REMOVE-001"),
        ("nothing", "no requirement nothing; docs/cases.md"),
        ("", "the finding names no requirement: give --requirement"),
    ],
)
def test_a_requirement_must_be_one(requirement: str, complaint: str) -> None:
    case = msgspec.structs.replace(finding(START), requirements=())
    names = (requirement,) if requirement else ()
    with pytest.raises((CaseError, PromotionError), match=complaint):
        promote(case, Wanted("static-x", None, names, NEWEST), REGISTRY, (), None)


def test_a_finding_without_a_machine_is_refused() -> None:
    case = msgspec.structs.replace(finding(START), machine=None)
    with pytest.raises(PromotionError, match="brings no machine of its own"):
        promoted(case)


def test_where_a_kubelet_is_known_to_do_otherwise_its_defect_is_asked_for() -> None:
    (case,) = loading.parse(
        FOUND
        + START
        + "  - admit: {pod: a, init: {i: {limits: {cpu: 1, memory: 64Mi}}},"
        + " containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}\n    expect: anything\n",
        "finding.yaml",
    )
    with pytest.raises(PromotionError, match="is known to answer this otherwise: name the --def"):
        promoted(case, "admission")
    made = promote(
        case, wanted("admission", defect="init-cpus-not-reused"), REGISTRY, (), None
    ).case
    assert made.defect == "init-cpus-not-reused"
