"""Memory, devices and merges as a case writes and expects them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders.containers import running
from builders.devices import reported
from builders.differences import in_one_line
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.schema import BlockExpected, DevicesExpected, Expected
from numaproof.conformance.judging import expectations
from numaproof.conformance.judging.node_expectations import (
    device_problems,
    memory_problems,
    nodes_of,
)
from numaproof.protocol import messages
from numaproof.protocol.machine import HugePages, MachineInfo, Node
from numaproof.protocol.messages import Hint, Level, MemoryBlock
from numaproof.protocol.sets import NUMASet

BLOCKS = (
    MemoryBlock(NUMASet([0]), "memory", 64),
    MemoryBlock(NUMASet([1]), "memory", 36),
    MemoryBlock(NUMASet([0, 1]), "hugepages-2Mi", 8),
)
IN_OTHER_ORDER = (
    BlockExpected((1, 0), 8, "hugepages-2Mi"),
    BlockExpected((1,), 36),
    BlockExpected((0,), 64),
)
PLACES = {"d0": (0,), "d1": (1,), "d2": ()}


@pytest.mark.parametrize("wanted", [None, {"memory": 100, "hugepages-2Mi": 8}, IN_OTHER_ORDER])
def test_memory_that_is_as_expected_has_no_problem(wanted: Any) -> None:
    assert list(memory_problems("it", wanted, BLOCKS, "placement")) == []


@pytest.mark.parametrize("wanted", [{}, {"memory": 100}, IN_OTHER_ORDER[1:], ()])
def test_memory_that_is_not_as_expected_is_a_problem(wanted: Any) -> None:
    (problem,) = memory_problems("it", wanted, BLOCKS, "placement")
    assert in_one_line(problem).startswith("it: expected ")


def test_where_memory_lies_does_not_count_below_placement() -> None:
    assert list(memory_problems("it", (BlockExpected((7,), 1),), BLOCKS, "admission")) == []


@pytest.mark.parametrize(
    "wanted", [2, "2", ("d1", "d0"), DevicesExpected(((1,), (0,)))], ids=["n", "text", "ids", "at"]
)
def test_devices_that_are_as_expected_have_no_problem(wanted: Any) -> None:
    assert list(device_problems("nic", wanted, ("d0", "d1"), PLACES, "placement")) == []


@pytest.mark.parametrize(
    ("wanted", "level", "problems"),
    [
        (1, "invariants", ["nic: expected 1 device, got 2 devices"]),
        (("d0", "d2"), "placement", ['nic: expected ["d0", "d2"], got ["d0", "d1"]']),
        (
            DevicesExpected(((0,), (0,))),
            "placement",
            [
                (
                    "nic: expected devices on NUMA node 0; NUMA node 0,"
                    " got devices on NUMA node 0; NUMA node 1"
                )
            ],
        ),
        (DevicesExpected(((0,), (0,))), "admission", []),
    ],
)
def test_devices_that_are_not_as_expected_are_a_problem(
    wanted: Any, level: Level, problems: list[str]
) -> None:
    found = device_problems("nic", wanted, ("d0", "d1"), PLACES, level)
    assert [in_one_line(one) for one in found] == problems


def test_a_written_device_list_becomes_what_a_plugin_reports() -> None:
    lists = manifests.device_lists({"x/nic": [[0], None, {"numa": [1], "healthy": False}]})
    assert lists == (reported("x/nic", d0=(0,), d1=None, d2=(1,), unhealthy="d2"),)
    assert nodes_of("x/nic", lists) == {"d0": (0,), "d1": (), "d2": (1,)}
    assert nodes_of("x/gpu", lists) == {}


def test_reserved_memory_that_was_counted_becomes_text() -> None:
    config = {"reservedMemory": [{"numaNode": 0, "limits": {"memory": 5}}, "odd"]}
    made = manifests.texts_where_due(config)
    assert made["reservedMemory"] == [{"numaNode": 0, "limits": {"memory": "5"}}, "odd"]


def test_memory_and_distances_of_a_machine_are_counted() -> None:
    pages = (HugePages(2048, 3), HugePages(1048576, 0))
    near, far = Node(0, 100, pages, (10, 20, 30)), Node(5, 50, None, (20, 10, 20))
    facts = Facts(MachineInfo(topology=(far, near, Node(9, 0, None, (30, 20, 10)))))
    assert facts.properties["memory_nodes"] == 2
    assert facts.properties["hugepage_sizes"] == 1
    assert facts.properties["equidistant"] is False
    names = facts.names()
    assert [names["node_id"](1), names["memory"](1)] == [5, 50]
    assert [names["hugepages"](0, 2048), names["hugepages"](1, 2048)] == [3 * 2048 * 1024, 0]
    assert names["per_node"](2) == [[0], [0], [5], [5], [9], [9]]


@pytest.fixture
def context(info: MachineInfo) -> expectations.Context:
    devices = (reported("x/nic", d0=(0,)),)
    return expectations.Context(Facts(info), None, {}, "/state", "placement", devices)


def test_a_merge_is_held_against_hint_and_admission(context: expectations.Context) -> None:
    merged = messages.Merged(Hint(NUMASet([0]), preferred=True), admit=True)
    right = Expected(hint={"numa": [0], "preferred": True}, admit=True)
    wrong = Expected(hint={"numa": [1], "preferred": True}, admit=False)
    assert expectations.check(right, merged, context) == []
    assert [in_one_line(one) for one in expectations.check(wrong, merged, context)] == [
        "admit: expected false, got true",
        (
            'the merged hint: expected {"numa": [1], "preferred": true}, '
            'got {"numa": [0], "preferred": true}'
        ),
    ]


def test_a_container_without_its_devices_is_a_problem(context: expectations.Context) -> None:
    answer = messages.Admitted({"app": running("")})
    wanted: Any = {"app": {"devices": {"x/nic": 1}, "memory": {"memory": 64}}}
    expected = msgspec.convert({"containers": wanted}, Expected)
    assert [in_one_line(one) for one in expectations.check(expected, answer, context)] == [
        'memory of app: expected {"memory": 64}, got {}',
        "x/nic of app: expected 1 device, got 0 devices",
    ]


def test_devices_and_merges_reach_the_implementation(
    play: Any, make_target: Any, reference: Any
) -> None:
    seen: list[tuple[str, Any]] = []

    class Recorder:
        """The reference, for what it has; its calls are kept."""

        def call(self, operation: str, args: Any) -> messages.Answer:
            seen.append((operation, args))
            if operation == "devices":
                return messages.Done()
            if operation == "merge":
                return messages.Merged(Hint(None, preferred=False), admit=False)
            answer: messages.Answer = reference.implementation.call(operation, args)
            return answer

        def close(self) -> None:
            """Nothing is held."""

    operations = (*reference.hello.operations, "devices", "merge")
    policies = messages.Policies(("none", "static"), ("None",), ("none", "restricted"))
    target = make_target(Recorder(), operations=operations, policies=policies)
    result, _ = play(
        target,
        """
        steps:
        - start: {}
        - devices: {x/nic: "${per_node(1)}"}
        - merge: {nodes: [0], policy: restricted, providers: [{nic: []}, null]}
          expect: {admit: false}
        """,
    )
    assert (result.outcome, result.message) == ("pass", "")
    calls = dict(seen)
    assert calls["devices"].devices == (reported("x/nic", d0=(0,)),)
    assert calls["merge"].providers == ({"nic": ()}, None)
    assert calls["merge"].kubernetes == "1.35"
