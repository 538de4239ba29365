"""Answers with more items than the machine and the pods can have."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.protocol import bounds, codec, messages
from numaproof.protocol.bounds import AnswerBounds
from numaproof.protocol.codec import ProtocolError
from numaproof.protocol.sets import CPUSet, NUMASet

CONTAINER = messages.Container(CPUSet([1]), CPUSet(), (), messages.Hint(None, preferred=True))
PODS = bounds.SPARE_PODS
CONTAINERS = bounds.SPARE_CONTAINERS


def pod(containers: int, init: int = 0) -> messages.Pod:
    return {"spec": {"containers": [{}] * containers, "initContainers": [{}] * init}}


def state(pods: int, containers: int = 1, files: dict[str, str] | None = None) -> messages.State:
    held = {f"c{number}": CONTAINER for number in range(containers)}
    return messages.State(CPUSet(), {f"u{number}": held for number in range(pods)}, files or {})


def bounds_after(*args: messages.Args) -> AnswerBounds:
    made = AnswerBounds()
    for one in args:
        made.ask(one)
    return made


def test_a_state_is_limited_to_requested_pods_and_a_few_more() -> None:
    start = messages.StartArgs({}, "/x", pods=(pod(1), pod(1)))
    made = bounds_after(start, messages.AdmitArgs(pod(1)), messages.NoArgs())
    assert made.check_answer(state(PODS + 3)) == state(PODS + 3)
    with pytest.raises(ProtocolError, match=rf"has {PODS + 4} pods \(expected at most {PODS + 3};"):
        made.check_answer(state(PODS + 4))


def test_containers_and_updates_are_limited_over_all_pods() -> None:
    made = bounds_after(messages.HintsArgs(pod(3, init=2), None), messages.AdmitArgs({}))
    most = CONTAINERS + 5
    made.check_answer(messages.Admitted({f"c{number}": CONTAINER for number in range(most)}))
    updates = (messages.CPUUpdate("u", "c", CPUSet()),) * most
    made.check_answer(messages.Reconciled(updates))
    for too_many in (
        messages.Admitted({f"c{number}": CONTAINER for number in range(most + 1)}),
        messages.Reconciled((*updates, updates[0])),
        state(1, containers=most + 1),
    ):
        with pytest.raises(ProtocolError, match=r"has 1,006 .* \(expected at most 1,005"):
            made.check_answer(too_many)


def test_files_in_a_state_are_limited() -> None:
    made = bounds_after(messages.AdmitArgs(pod(1)))
    most = bounds.FILE_BYTES + bounds.FILE_BYTES_PER_POD
    made.check_answer(state(0, files={"a": "x" * most}))
    with pytest.raises(ProtocolError, match=r"characters of files \(expected at most"):
        made.check_answer(state(0, files={"a": "x" * most, "b": "x"}))
    with pytest.raises(ProtocolError, match=r"has 17 files \(expected at most 16"):
        made.check_answer(state(0, files={f"f{number}": "" for number in range(17)}))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({"ok": {"shared": "8192", "pods": {}}}, "8192 in '8192' is larger than 8191"),
        ({"ok": {"shared": "1," * 9000 + "1", "pods": {}}}, "has more than 8192 parts"),
        ({"ok": {"shared": "9" * 5000, "pods": {}}}, "is larger than 8191"),
        ({"fault": {"message": "x" * (1 << 20)}}, r"bytes \(expected at most 1,048,576"),
    ],
)
def test_a_huge_response_is_refused_before_it_is_read(
    answer: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ProtocolError, match=complaint) as caught:
        codec.decode_answer(codec.encode({"id": 1, **answer}), 1, "state")
    assert len(str(caught.value)) < 1000


def test_a_numa_node_beyond_linux_is_refused() -> None:
    with pytest.raises(ProtocolError, match="NUMA node 1024 is larger than 1023"):
        codec.decode(b'{"numa":[0,1024],"preferred":true}', messages.Hint)
    made = codec.decode(b'{"numa":[0,1023],"preferred":true}', messages.Hint)
    assert made.numa == NUMASet([0, 1023])


def test_a_hello_answer_is_limited() -> None:
    hello = {"id": 1, "ok": {"operations": ["x" * (1 << 20)]}}
    with pytest.raises(ProtocolError, match=r"in ok: .* bytes \(expected at most 1,048,576"):
        codec.decode_answer(codec.encode(hello), 1, "hello")
