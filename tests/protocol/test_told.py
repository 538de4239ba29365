"""Answers contain optional fields only if the start requested them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders.containers import running
from numaproof.protocol import messages
from numaproof.protocol.codec import ProtocolError
from numaproof.protocol.optional_fields import RequestedFields
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

QUOTA = {"app": msgspec.structs.replace(running("1"), quota=True)}
FATE = messages.RefusedPod("Failed", "SMTAlignmentError", "Pod was rejected: no", "no")

TOLD: dict[str, tuple[messages.Told, messages.Answer]] = {
    "config": (
        "effective-configuration",
        messages.Started(messages.StartedCPUs(CPUSet(), CPUSet()), (), {"cpuCFSQuota": True}),
    ),
    "pod": ("refused-pods", messages.AdmissionRefused("SMTAlignmentError", "no", FATE)),
    "containers.app.quota": ("quota", messages.Admitted(QUOTA)),
    "metrics": ("metrics", messages.State(CPUSet(), {}, metrics={})),
    "pods.uid-a.app.quota": ("quota", messages.State(CPUSet(), {"uid-a": QUOTA})),
}


def requested_fields(*tell: messages.Told) -> RequestedFields:
    """Returns a start that requests these fields."""
    made = RequestedFields()
    made.ask(messages.StartArgs({}, "/state", tell=tell))
    return made


@pytest.mark.parametrize("path", TOLD)
def test_an_unrequested_field_is_a_protocol_error(path: str) -> None:
    told, answer = TOLD[path]
    others: list[Any] = sorted({one for one, _ in TOLD.values()} - {told})
    with pytest.raises(ProtocolError) as raised:
        requested_fields(*others).check_answer(answer)
    assert str(raised.value) == (
        f'`{path}` was not requested; leave it out unless the start\'s `tell` includes "{told}"'
    )
    assert requested_fields(told).check_answer(answer) is answer


def test_each_start_requests_fields_separately() -> None:
    made = requested_fields("quota")
    made.ask(messages.StartArgs({}, "/state"))
    with pytest.raises(ProtocolError, match="not requested"):
        made.check_answer(messages.Admitted(QUOTA))


def test_pods_are_preempted_only_if_the_node_is_checked() -> None:
    pod = messages.PreemptedPod("uid-a", "Preempting", "why")
    answer = messages.Admitted({"app": running("1")}, (pod,))
    with pytest.raises(ProtocolError, match="although the start has no `check_node`"):
        requested_fields().check_answer(answer)
    made = RequestedFields()
    made.ask(messages.StartArgs({}, "/state", check_node=True))
    assert made.check_answer(answer) is answer


def test_answers_without_optional_fields_are_valid() -> None:
    hello = Reference().hello(messages.HelloArgs((1, 1), "tests"))
    for made in (
        requested_fields(),
        requested_fields("quota", "refused-pods", "effective-configuration"),
    ):
        for answer in (hello, messages.Admitted({"app": running("1")}), messages.Done()):
            assert made.check_answer(answer) is answer
