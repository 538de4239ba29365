"""Two answers to the same call, compared at a level."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.containers import running
from builders.differences import parts
from numaproof.conformance.judging.comparison import (
    any_gate,
    any_option,
    any_resource,
    difference,
)
from numaproof.conformance.judging.oracle import disagreement
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.deviations.releases import release
from numaproof.reference.memory.state import Block, MemoryState

if TYPE_CHECKING:
    from numaproof.protocol.messages import Level


def admitted(cpus: str) -> messages.Admitted:
    return messages.Admitted({"app": running(cpus)})


def state(file: str) -> messages.State:
    return messages.State(CPUSet(), {}, {"memory_manager_state": file})


def memory_file(*types: str, right: bool = True) -> str:
    """A checkpoint with one container that has a block of each type, in this order."""
    blocks = tuple(Block(1, one, 64) for one in types)
    kept = MemoryState({}, {"uid-a": {"app": blocks}})
    written = memory_checkpoint.dump(kept, "Static", release("1.36").memory_files).decode()
    return written if right else written.replace('"checksum":', '"checksum":1')


NO = messages.AdmissionRefused("SMTAlignmentError", "no")
OTHER_WORDS = messages.AdmissionRefused("SMTAlignmentError", "never")
_REFUSED = "refused with SMTAlignmentError"
OTHER_REASON = messages.AdmissionRefused("TopologyAffinityError", "no")


@pytest.mark.parametrize(
    ("left", "right", "level", "found"),
    [
        (admitted("1"), NO, "invariants", None),
        (
            admitted("1"),
            NO,
            "admission",
            "the outcome: expected refused with SMTAlignmentError, got accepted",
        ),
        (NO, OTHER_REASON, "admission", "the outcome: expected refused with"),
        (
            NO,
            messages.AdmissionRefused("", "no"),
            "admission",
            f"the outcome: expected refused without a reason, got {_REFUSED}",
        ),
        (NO, OTHER_WORDS, "placement", None),
        (NO, OTHER_WORDS, "kubelet", "message: expected never, got no"),
        (admitted("1"), admitted("2"), "admission", None),
        (admitted("1"), admitted("2"), "placement", "containers.app.cpus: expected 2, got 1"),
        (
            admitted("1"),
            messages.Admitted({}),
            "placement",
            "containers.app: expected (absent), got {",
        ),
        (admitted("1"), admitted("1"), "kubelet", None),
        (admitted("1"), messages.Unsupported("admit"), "kubelet", None),
        (messages.Fault("x"), messages.Fault("x"), "kubelet", None),
        (
            messages.Fault("x"),
            admitted("1"),
            "admission",
            "the outcome: expected accepted, got a fault",
        ),
        (
            messages.StartRefused("cpu", "x"),
            messages.StartRefused("config", "x"),
            "admission",
            "the outcome: expected refused at stage config, got refused at stage cpu",
        ),
        (state("a"), state("b"), "placement", None),
        (state("a"), state("b"), "kubelet", "files.memory_manager_state: expected b, got a"),
        (state("[1]"), state("[1]"), "kubelet", None),
        (state("{}"), state("{} "), "kubelet", "files.memory_manager_state: expected "),
        (
            messages.NodeHints({}, {}, None),
            messages.NodeHints({}, {}, {}),
            "kubelet",
            None,
        ),
        (
            MachineInfo(topology=(Node(node_id=0, memory=1), Node(node_id=1, memory=2))),
            MachineInfo(topology=(Node(node_id=1, memory=2), Node(node_id=0, memory=1))),
            "placement",
            None,
        ),
        (
            MachineInfo(topology=(Node(node_id=0, memory=1), Node(node_id=1, memory=2))),
            MachineInfo(topology=(Node(node_id=1, memory=2), Node(node_id=0, memory=1))),
            "kubelet",
            "order (only the order differs): expected [1, 0], got [0, 1]",
        ),
        (
            # Packages in place of nodes.
            MachineInfo(topology=(Node(node_id=0), Node(node_id=1))),
            MachineInfo(topology=(Node(node_id=1), Node(node_id=0))),
            "kubelet",
            None,
        ),
        (
            MachineInfo(topology=(Node(node_id=0, memory=1),)),
            MachineInfo(topology=(Node(node_id=0, memory=2),)),
            "placement",
            "nodes.0.memory: expected 2, got 1",
        ),
    ],
)
def test_answers_differ_in_what_their_level_compares(
    left: messages.Answer, right: messages.Answer, level: Level, found: str | None
) -> None:
    difference_found = difference(left, right, level)
    if found is None:
        assert difference_found is None
    else:
        assert "{}: expected {}, got {}".format(*parts(difference_found)).startswith(found)


TWO = ("memory", "hugepages-2Mi")


def test_the_order_in_which_the_kubelet_happens_to_write_blocks_is_no_difference() -> None:
    one, other = memory_file(*TWO), memory_file(*TWO[::-1])
    assert one != other
    assert difference(state(one), state(other), "kubelet") is None


def test_a_checksum_that_is_not_the_one_of_its_text_is_a_difference() -> None:
    one, other = memory_file(*TWO), memory_file(*TWO[::-1], right=False)
    assert parts(difference(state(one), state(other), "kubelet")) == (
        "files.memory_manager_state.checksum",
        "false",
        "true",
    )


def two_parts(*types: str, wrong: str = "") -> str:
    """Such a checkpoint of two parts; a `wrong` checksum begins with another digit."""
    blocks = tuple(Block(1, one, 64) for one in types)
    kept = MemoryState({}, {"uid-a": {"app": blocks}}, {"uid-b": blocks})
    written = memory_checkpoint.dump(kept, "Static", release("1.37").memory_files).decode()
    return written.replace(f'"{wrong}":', f'"{wrong}":1')


def test_blocks_may_be_in_any_order_in_both_parts_of_a_file() -> None:
    one, other = two_parts(*TWO), two_parts(*TWO[::-1])
    assert one != other
    assert difference(state(one), state(other), "kubelet") is None


@pytest.mark.parametrize("name", ["checksum", "dataChecksum"])
def test_either_checksum_has_to_be_that_of_its_part(name: str) -> None:
    one, other = two_parts(*TWO), two_parts(*TWO[::-1], wrong=name)
    assert parts(difference(state(one), state(other), "kubelet")) == (
        f"files.memory_manager_state.{name}",
        "false",
        "true",
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"machineState":{},"entries":{"u":null}}',
        '{"machineState":{},"entries":[],"podEntries":{"u":null,"v":{}}}',
        '{"machineState":{},"entries":{"u":{"c":[1,2]}},"data":"["}',
    ],
)
def test_a_file_with_nothing_where_blocks_should_be_is_compared_by_its_text(text: str) -> None:
    assert difference(state(text), state(text), "kubelet") is None
    assert difference(state(text), state(f"{text} "), "kubelet") is not None


def test_blocks_of_unknown_fields_have_no_right_checksum() -> None:
    text = '{"machineState":{},"entries":{"u":{"c":[{"odd":1},{"odd":2}]}},"checksum":1}'
    assert difference(state(text), state(f"{text} "), "kubelet") is None


def test_a_file_with_one_block_for_each_container_is_compared_by_its_text() -> None:
    one, other = memory_file("memory"), memory_file("memory", right=False)
    assert difference(state(one), state(one), "kubelet") is None
    found = difference(state(one), state(other), "kubelet")
    assert found is not None
    assert found.subject == "files.memory_manager_state"
    assert found.actual.startswith('"{')


def test_the_order_of_hints_is_a_difference() -> None:
    hints = (messages.Hint(NUMASet([0]), preferred=True), messages.Hint(None, preferred=False))
    one = messages.NodeHints({"cpu": hints}, {})
    other = messages.NodeHints({"cpu": hints[::-1]}, {})
    assert difference(one, other, "placement")


@pytest.mark.parametrize(
    "message",
    [
        'CPU Manager Policy Alpha-level Options not enabled, but option "a" provided',
        'Topology Manager Policy Beta-level Options not enabled, but option "a" provided',
        'unknown CPU Manager Policy option: "b"',
        'unknown Topology Manager Policy option: "b"',
        'the minimum value of "c" should not be less than 8',
        'bad value for option "c": x',
    ],
)
def test_of_several_bad_options_any_may_be_named(message: str) -> None:
    refused = any_option(messages.StartRefused("cpu", message))
    assert isinstance(refused, messages.StartRefused)
    assert refused.message == "one of the options is refused"


def test_of_several_bad_gates_any_may_be_named() -> None:
    begin = "failed to set feature gates from initial flags-based config"
    for names in ("unrecognized feature gate: A", "[cannot set feature gate B to false]"):
        assert any_gate(messages.StartRefused("config", f"{begin}: {names}")) == (
            messages.StartRefused("config", begin)
        )


def test_other_refusals_keep_their_words() -> None:
    assert any_option(NO) is any_gate(NO) is NO
    refused = messages.StartRefused("cpu", "other")
    assert any_option(refused) == refused


NIC = "Requested: 2, Available: 1, which is unexpected"


@pytest.mark.parametrize(
    "what",
    [
        f"requested number of devices unavailable for v.example/nic. {NIC}",
        "no healthy devices present; cannot allocate unhealthy devices v.example/gpu,",
        "cannot allocate unregistered device v.example/gpu,",
    ],
)
def test_of_several_resources_without_devices_any_may_be_named(what: str) -> None:
    refused = any_resource(messages.AdmissionRefused("UnexpectedAdmissionError", f"No: {what}"))
    assert isinstance(refused, messages.AdmissionRefused)
    assert refused.message.startswith("No: the devices of a resource are unavailable,")
    fate = messages.RefusedPod("Failed", "UnexpectedAdmissionError", f"Told: {what}", f"No: {what}")
    told = any_resource(messages.AdmissionRefused("UnexpectedAdmissionError", "No", fate))
    assert isinstance(told, messages.AdmissionRefused)
    assert told.pod is not None
    assert told.pod.event == refused.message
    assert told.pod.message == refused.message.replace("No:", "Told:")


def test_a_refusal_for_another_reason_keeps_its_words() -> None:
    assert any_resource(NO) == NO
    assert any_resource(admitted("1")) == admitted("1")


def test_the_blocks_of_a_pod_as_a_whole_may_be_in_any_order() -> None:
    def written(*types: str) -> str:
        blocks = tuple(Block(1, one, 64) for one in types)
        kept = MemoryState({}, {"uid-a": {"app": ()}}, {"uid-a": blocks})
        gated = release("1.36").under({"PodLevelResourceManagers": True})
        return memory_checkpoint.dump(kept, "Static", gated.memory_files).decode()

    one, other = written("memory", "hugepages-2Mi"), written("hugepages-2Mi", "memory")
    assert one != other
    assert difference(state(one), state(other), "kubelet") is None
    wrong = other.replace('"checksum":', '"checksum":1')
    assert difference(state(one), state(wrong), "kubelet") is not None


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"topologyManagerPolicyOptions": {"a": "", "b": ""}},
            "Topology Manager Policy Beta-level Options not enabled, but option {} provided",
        ),
        (
            {"featureGates": {"a": True, "b": True}},
            "failed to set feature gates from initial flags-based config: unrecognized: {}",
        ),
    ],
    ids=["options", "gates"],
)
def test_refusals_agree_that_name_one_or_the_other_of_two(config: Any, said: str) -> None:
    args = messages.StartArgs(config=config, state_dir="/state")
    one, other = (messages.StartRefused("config", said.format(name)) for name in "ab")
    assert disagreement(args, one, other, "kubelet") is None
    alone = messages.StartArgs(config={}, state_dir="/state")
    assert disagreement(alone, one, other, "kubelet")


def started(*nodes: int) -> messages.Started:
    blocks = tuple(messages.MemoryBlock(NUMASet([node]), "memory", 64) for node in nodes)
    return messages.Started(messages.StartedCPUs(CPUSet(), CPUSet()), blocks)


EMPTY_AND_LEFT_OUT: list[tuple[str, str, str]] = [
    ("admit", '{"containers":{"app":{%s}}}', '"devices":{}'),
    ("state", '{"shared":"","pods":{"uid":{"app":{%s}}}}', '"devices":{}'),
    ("state", '{"shared":"","pods":{}%s}', ',"files":{}'),
    ("hints", '{"cpu":{},"memory":{}%s}', ',"devices":{}'),
    ("discover", '{"num_cores":1%s}', ',"hugepages":[],"topology":[]'),
    (
        "discover",
        '{"topology":[{"node_id":0%s}]}',
        ',"hugepages":[],"distances":[],"cores":[],"caches":[]',
    ),
    (
        "discover",
        '{"topology":[{"node_id":0,"cores":[{"core_id":0%s}]}]}',
        ',"thread_ids":[],"uncore_caches":[],"caches":[]',
    ),
]
CONTAINER = '"cpus":"","exclusive":"","memory":[],"affinity":{"numa":null,"preferred":false}'


@pytest.mark.parametrize(("operation", "text", "empty"), EMPTY_AND_LEFT_OUT)
def test_what_may_be_left_out_may_be_empty_or_null(operation: str, text: str, empty: str) -> None:
    null = empty.replace("[]", "null")
    if "files" not in empty:
        null = null.replace("{}", "null")
    answers = []
    for field in ("", empty, null):
        inside = f"{CONTAINER},{field}".rstrip(",") if "app" in text else field
        line = b'{"id":1,"ok":' + (text % inside).encode() + b"}"
        answers.append(codec.decode_answer(line, 1, operation))
    for one, other in itertools.product(answers, answers):
        assert difference(one, other, "kubelet") is None


def holding(*devices: str) -> messages.Admitted:
    app = msgspec.structs.replace(running("1"), devices={"a/b": devices})
    return messages.Admitted({"app": app})


@pytest.mark.parametrize("level", ["placement", "kubelet"])
def test_the_order_of_a_set_is_no_difference(level: Level) -> None:
    assert difference(started(0, 12, 13, 1, 4), started(0, 1, 4, 12, 13), level) is None
    assert difference(holding("d1", "d0"), holding("d0", "d1"), level) is None
    hosts = [MachineInfo(topology=(Node(0, 1, cores=one),)) for one in (CORES, CORES[::-1])]
    assert (difference(*hosts, level) is None) == (level == "placement")


CORES = (Core(0, (0, 4)), Core(1, (5, 1)))


def test_what_a_set_lists_twice_is_a_difference_that_says_so() -> None:
    found = difference(holding("d0", "d1", "d1"), holding("d0", "d1"), "placement")
    assert parts(found) == (
        "containers.app.devices.a/b (lists d1 more than once)",
        '["d0", "d1"]',
        '["d0", "d1", "d1"]',
    )


def test_a_difference_in_order_alone_says_so() -> None:
    updates = [messages.CPUUpdate(one, "app", CPUSet([0])) for one in ("a", "b")]
    one, other = messages.Reconciled(tuple(updates)), messages.Reconciled(tuple(updates[::-1]))
    found = difference(one, other, "placement")
    assert found is not None
    assert found.subject == "updates (only the order differs)"
