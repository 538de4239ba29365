"""What a case expects, held against answers."""

from __future__ import annotations

from typing import Any

import pytest

from builders.containers import running
from builders.differences import in_one_line
from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import (
    ContainerExpected,
    CPUs,
    CPUsExpected,
    Expected,
    UpdateExpected,
)
from numaproof.conformance.judging.expectations import Context, check
from numaproof.protocol import messages
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.sets import CPUSet, NUMASet


def container(cpus: str, exclusive: str | None = None) -> messages.Container:
    return running(cpus, exclusive, [0])


@pytest.fixture
def context(info: MachineInfo) -> Context:
    return Context(
        facts=Facts(info),
        shared=CPUSet.parse("0-1"),
        containers={"b/app": container("4-5")},
        state_dir="/state",
        level="kubelet",
    )


def wrong(context: Context, answer: messages.Answer, **expected: Any) -> list[str]:
    return [in_one_line(one) for one in check(Expected(**expected), answer, context)]


@pytest.mark.parametrize(
    "cpus",
    [
        4,
        "2-5",
        CPUsExpected(count=4, at_least=4, within="2-6", contains="2", disjoint_from="0-1"),
        CPUsExpected(disjoint_from="shared"),
        CPUsExpected(whole_cores=True, cores=2, sockets=1, numa_nodes=1, uncore_caches=0),
        CPUsExpected(per_node=(4,)),
    ],
)
def test_a_set_that_is_as_expected_has_no_problem(context: Context, cpus: CPUs) -> None:
    assert wrong(context, messages.Assigned(CPUSet.parse("2-5")), cpus=cpus) == []


@pytest.mark.parametrize(
    ("cpus", "problem"),
    [
        (3, "expected 3 CPUs, got 4 CPUs (2-5)"),
        ("2-6", "expected 2-6, got 2-5"),
        ("shared", "expected 0-1, got 2-5"),
        (CPUsExpected(within="2-4"), "expected CPUs within 2-4, got 2-5"),
        (CPUsExpected(contains="7"), "expected CPUs that include 7, got 2-5"),
        (CPUsExpected(disjoint_from="5-6"), "expected CPUs apart from 5-6, got 2-5"),
        (CPUsExpected(at_least=5), "expected at least 5 CPUs, got 4 CPUs (2-5)"),
        (CPUsExpected(whole_cores=False), "expected at least one core in part, got 2-5"),
        (CPUsExpected(cores=3), "expected 3 cores, got 2 cores (2-5)"),
        (CPUsExpected(per_node=(2, 2)), "expected 2, 2 CPUs per node, got 4 CPUs per node (2-5)"),
        (CPUsExpected(same_as="b/app"), "expected the CPUs of b/app (4-5), got 2-5"),
        (
            CPUsExpected(within_container="b/app"),
            "expected CPUs within those of b/app (4-5), got 2-5",
        ),
        (
            CPUsExpected(disjoint_from_container="b/app"),
            "expected CPUs apart from those of b/app (4-5), got 2-5",
        ),
        (CPUsExpected(same_as="c/app"), "expected the CPUs of c/app, got no container c/app"),
    ],
)
def test_a_set_that_is_not_as_expected_says_how(context: Context, cpus: CPUs, problem: str) -> None:
    answer = messages.Assigned(CPUSet.parse("2-5"))
    assert wrong(context, answer, cpus=cpus) == [f"assigned CPUs: {problem}"]


def test_relations_to_another_container_hold(context: Context) -> None:
    answer = messages.Assigned(CPUSet.parse("4-5"))
    assert wrong(context, answer, cpus=CPUsExpected(same_as="b/app")) == []
    assert wrong(context, answer, cpus=CPUsExpected(within_container="b/app")) == []
    apart = messages.Assigned(CPUSet.parse("2-3"))
    assert wrong(context, apart, cpus=CPUsExpected(disjoint_from_container="b/app")) == []


def test_without_a_known_pool_shared_is_empty(info: MachineInfo) -> None:
    context = Context(Facts(info), None, {}, "/state", level="kubelet")
    answer = messages.Assigned(CPUSet())
    assert wrong(context, answer, cpus="shared") == []


REFUSED = messages.AdmissionRefused("SMTAlignmentError", "in /state: no")


def test_a_refusal_is_compared_by_reason_and_text(context: Context) -> None:
    good = {"refused": "SMTAlignmentError", "message": "in $STATE_DIR: no"}
    assert wrong(context, REFUSED, **good) == []
    assert wrong(context, REFUSED) == [
        "the outcome: expected success, got refused with SMTAlignmentError (in /state: no)"
    ]
    assert wrong(context, REFUSED, refused="X") == [
        "the outcome: expected a refusal with X, got refused with SMTAlignmentError (in /state: no)"
    ]
    assert wrong(context, REFUSED, **{**good, "message": "yes"}) == [
        'the message: expected yes, got "in $STATE_DIR: no"'
    ]


def test_texts_count_at_level_kubelet_alone(info: MachineInfo) -> None:
    context = Context(Facts(info), None, {}, "/state", level="placement")
    assert wrong(context, REFUSED, refused="SMTAlignmentError", message="other") == []


def test_an_acceptance_is_not_a_refusal(context: Context) -> None:
    answer = messages.Assigned(CPUSet())
    assert wrong(context, answer, refused="cpu") == [
        "the outcome: expected a refusal with cpu, got accepted"
    ]


def test_a_fault_is_wrong_even_where_anything_is_expected(context: Context) -> None:
    (found,) = check("anything", messages.Fault("boom"), context)
    assert str(found) == "the implementation broke: boom"
    assert check("anything", REFUSED, context) == []


def test_a_start_says_all_and_allocatable_cpus(context: Context) -> None:
    cpus = messages.StartedCPUs(CPUSet.parse("0-7"), CPUSet.parse("1-7"))
    answer = messages.Started(cpus, ())
    assert wrong(context, answer, all=8, allocatable="1-7") == []
    assert wrong(context, answer, all=7, allocatable=8) == [
        "all CPUs: expected 7 CPUs, got 8 CPUs (0-7)",
        "allocatable CPUs: expected 8 CPUs, got 7 CPUs (1-7)",
    ]


KEPT = {"numa": [0], "preferred": True}


def test_containers_are_compared_by_their_cpus_and_affinity(context: Context) -> None:
    answer = messages.Admitted({"app": container("2-3")})
    wanted = ContainerExpected(exclusive=2, cpus="2-3", affinity=KEPT)
    assert wrong(context, answer, containers={"app": wanted}) == []
    wanted = ContainerExpected(exclusive="", cpus=1, affinity={"numa": None, "preferred": True})
    assert wrong(context, answer, containers={"app": wanted, "lost": wanted}) == [
        "exclusive CPUs of app: expected no CPUs, got 2-3",
        "CPUs of app: expected 1 CPU, got 2 CPUs (2-3)",
        (
            'the affinity of app: expected {"numa": null, "preferred": true},'
            ' got {"numa": [0], "preferred": true}'
        ),
        "there is no container lost in the answer",
    ]


@pytest.mark.parametrize("size", [64, 32])
def test_the_blocks_of_a_container_may_be_written_in_any_order(context: Context, size: int) -> None:
    def fields(*blocks: tuple[str, int]) -> dict[str, Any]:
        held = [{"numaAffinity": [0], "type": kind, "size": size} for kind, size in blocks]
        return {"policyName": "Static", "machineState": {}, "entries": {"uid-a": {"app": held}}}

    wanted = fields(("memory", 64), ("hugepages-2Mi", 64))
    text = checkpoints.text(fields(("hugepages-2Mi", 64), ("memory", size)))
    answer = messages.State(CPUSet(), {}, {"memory_manager_state": text})
    found = wrong(context, answer, checkpoints={"memory_manager_state": wanted})
    assert len(found) == (size != 64)


def test_a_state_is_compared_by_pool_pods_and_files(context: Context) -> None:
    files = {"cpu_manager_state": '{"policyName":"static"}', "other": "not JSON"}
    answer = messages.State(CPUSet.parse("0-1"), {"uid-a": {"app": container("2-3")}}, files)
    good = {
        "shared": "0-1",
        "pods": {"a": {"app": ContainerExpected(exclusive=2)}},
        "files": {"cpu_manager_state": {"policyName": "static"}, "other": "not JSON"},
    }
    assert wrong(context, answer, **good) == []
    assert wrong(context, answer, shared=3, pods={"b": {}}) == [
        "the shared pool: expected 3 CPUs, got 2 CPUs (0-1)",
        'pods in the state: expected ["uid-b"], got ["uid-a"]',
    ]
    assert wrong(
        context,
        answer,
        files={
            "missing": "",
            "other": {},
            "cpu_manager_state": {"policyName": "none", "checksum": 1},
        },
    ) == [
        "there is no file missing",
        "other is not JSON: JSON is malformed: invalid character (byte 4)",
        "cpu_manager_state.policyName: expected none, got static",
        "cpu_manager_state has no checksum",
    ]
    assert wrong(context, answer, files={"other": "text"}) == [
        'other: expected text, got "not JSON"'
    ]


def test_updates_are_compared_in_their_order(context: Context) -> None:
    answer = messages.Reconciled((messages.CPUUpdate("uid-a", "app", CPUSet.parse("0-1")),))
    assert wrong(context, answer) == []
    good = UpdateExpected("a", "app", cpus="shared")
    assert wrong(context, answer, updates=(good,)) == []
    assert wrong(context, answer, updates=()) == ["updates: expected nothing, got uid-a/app"]
    assert wrong(context, answer, updates=(UpdateExpected("a", "app", cpus=1),)) == [
        "the update of a/app: expected 1 CPU, got 2 CPUs (0-1)"
    ]


def test_hints_are_compared_exactly_by_provider(context: Context) -> None:
    hint = messages.Hint(NUMASet([0]), preferred=True)
    answer = messages.NodeHints({"cpu": (hint,)}, {"memory": None}, None)
    good = {"cpu": {"cpu": [{"numa": [0], "preferred": True}]}, "memory": {"memory": None}}
    assert wrong(context, answer, hints=good) == []
    assert wrong(context, answer) == []
    assert wrong(context, answer, hints={"memory": {"memory": []}}) == [
        'hints of memory: expected {"memory": []}, got {"memory": null}'
    ]


@pytest.mark.parametrize("wanted", [None, []])
@pytest.mark.parametrize("given", [None, ()])
def test_an_empty_list_of_a_machine_may_be_null(context: Context, wanted: Any, given: Any) -> None:
    core = Core(0, (0,), uncore_caches=given)
    answer = MachineInfo(hugepages=given, topology=(Node(0, cores=(core,), caches=given),))
    cores = {"0": {"uncore_caches": wanted}}
    nodes = {"0": {"caches": wanted, "cores": cores}}
    assert wrong(context, answer, machine={"hugepages": wanted, "nodes": nodes}) == []


def test_a_machine_is_compared_by_what_is_named(context: Context, info: MachineInfo) -> None:
    good = {"num_cores": 8, "nodes": {"0": {"node_id": 0}}}
    assert wrong(context, info, machine=good) == []
    assert wrong(context, info) == []
    assert wrong(context, info, machine={"num_cores": 9, "nodes": {"1": {}}}) == [
        "machine.num_cores: expected 9, got 8",
        "machine.nodes has no 1",
    ]
