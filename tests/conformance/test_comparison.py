"""Two answers to the same call, compared at a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.comparison import any_device, any_option, difference
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo, Node
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from numaproof.protocol.messages import Level


def container(cpus: str) -> messages.Container:
    own = CPUSet.parse(cpus)
    return messages.Container(own, own, (), messages.Hint(None, preferred=True))


def admitted(cpus: str) -> messages.Admitted:
    return messages.Admitted({"app": container(cpus)})


def state(file: str) -> messages.State:
    return messages.State(CPUSet(), {}, {"memory_manager_state": file})


def memory_file(types: tuple[str, ...], checksum: int = 1) -> str:
    blocks = ",".join(f'{{"type":"{one}"}}' for one in types)
    return f'{{"machineState":{{}},"entries":{{"p":{{"c":[{blocks}]}}}},"checksum":{checksum}}}'


NO = messages.AdmissionRefused("SMTAlignmentError", "no")
OTHER_WORDS = messages.AdmissionRefused("SMTAlignmentError", "never")
OTHER_REASON = messages.AdmissionRefused("TopologyAffinityError", "no")


@pytest.mark.parametrize(
    ("left", "right", "level", "found"),
    [
        (admitted("1"), NO, "invariants", None),
        (admitted("1"), NO, "admission", "accepted against refused with SMTAlignmentError"),
        (NO, OTHER_REASON, "admission", "refused with SMTAlignmentError against refused with"),
        (NO, OTHER_WORDS, "placement", None),
        (NO, OTHER_WORDS, "kubelet", "message is 'no' against 'never'"),
        (admitted("1"), admitted("2"), "admission", None),
        (admitted("1"), admitted("2"), "placement", "containers.app.cpus is '1' against '2'"),
        (admitted("1"), messages.Admitted({}), "placement", "containers.app is only on one side"),
        (admitted("1"), admitted("1"), "kubelet", None),
        (admitted("1"), messages.Unsupported("admit"), "kubelet", None),
        (messages.Fault("x"), messages.Fault("x"), "kubelet", None),
        (messages.Fault("x"), admitted("1"), "admission", "a fault against accepted"),
        (
            messages.StartRefused("cpu", "x"),
            messages.StartRefused("config", "x"),
            "admission",
            "refused at stage cpu against refused at stage config",
        ),
        (state("a"), state("b"), "placement", None),
        (state("a"), state("b"), "kubelet", "files.memory_manager_state is 'a' against 'b'"),
        (state("[1]"), state("[1]"), "kubelet", None),
        (state("{}"), state("{} "), "kubelet", "files.memory_manager_state is"),
        (
            messages.NodeHints({}, {}, None),
            messages.NodeHints({}, {}, {}),
            "kubelet",
            None,
        ),
        (
            MachineInfo(topology=(Node(node_id=0, memory=1), Node(node_id=1, memory=2))),
            MachineInfo(topology=(Node(node_id=1, memory=2), Node(node_id=0, memory=1))),
            "kubelet",
            None,
        ),
        (
            MachineInfo(topology=(Node(node_id=0, memory=1),)),
            MachineInfo(topology=(Node(node_id=0, memory=2),)),
            "placement",
            "nodes.0.memory is 1 against 2",
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
        assert difference_found is not None
        assert difference_found.startswith(found)


def test_the_order_in_which_the_kubelet_happens_to_write_blocks_is_no_difference() -> None:
    one = state(memory_file(("memory", "hugepages-1Gi"), checksum=1))
    other = state(memory_file(("hugepages-1Gi", "memory"), checksum=2))
    assert difference(one, other, "kubelet") is None


def test_the_order_of_hints_is_a_difference() -> None:
    hints = (messages.Hint(NUMASet([0]), preferred=True), messages.Hint(None, preferred=False))
    one = messages.NodeHints({"cpu": hints}, {})
    other = messages.NodeHints({"cpu": hints[::-1]}, {})
    assert difference(one, other, "placement")


@pytest.mark.parametrize(
    "message",
    [
        'CPU Manager Policy Alpha-level Options not enabled, but option "a" provided',
        'unknown CPU Manager Policy option: "b"',
        'bad value for option "c": x',
    ],
)
def test_of_several_bad_options_any_may_be_named(message: str) -> None:
    refused = any_option(messages.StartRefused("cpu", message))
    assert isinstance(refused, messages.StartRefused)
    assert refused.message == "one of the options is refused"


def test_other_refusals_keep_their_words() -> None:
    assert any_option(NO) is NO
    refused = messages.StartRefused("cpu", "other")
    assert any_option(refused) == refused


def held(*devices: str) -> messages.Admitted:
    none = messages.Hint(None, preferred=False)
    one = messages.Container(CPUSet(), CPUSet(), (), none, {"nic": devices})
    return messages.Admitted({"app": one})


PLACES = {"nic": {"d0": (0,), "d1": (0,), "d2": (1,)}}


def test_which_of_several_devices_on_a_node_is_picked_is_no_difference() -> None:
    left, right = any_device(held("d0", "d2"), PLACES), any_device(held("d2", "d1"), PLACES)
    assert difference(left, right, "kubelet") is None


@pytest.mark.parametrize("other", [("d2",), ("d0", "d1"), ("unknown",), ()])
def test_devices_on_other_nodes_or_another_number_of_them_are_a_difference(
    other: tuple[str, ...],
) -> None:
    left, right = any_device(held("d0"), PLACES), any_device(held(*other), PLACES)
    assert difference(left, right, "placement") is not None


def test_devices_in_the_state_are_told_by_their_nodes_too() -> None:
    states = [
        messages.State(CPUSet(), {"uid-a": held(one).containers}) for one in ("d0", "d1", "d2")
    ]
    first, alike, other = (any_device(state, PLACES) for state in states)
    assert difference(first, alike, "kubelet") is None
    assert difference(first, other, "kubelet") is not None
