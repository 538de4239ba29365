"""Two answers to the same call, compared at a level: `comparison.yaml` has pairs of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from builders.answers import answer_in
from builders.differences import parts
from builders.tables import Table
from numaproof.conformance.judging.oracle import (
    any_gate,
    any_option,
    any_resource,
    difference,
    disagreement,
)
from numaproof.protocol import codec, messages

COMPARISON = Table(__file__, "comparison.yaml")
NO = messages.AdmissionRefused("SMTAlignmentError", "no")


@COMPARISON
def test_answers_differ_in_what_their_level_compares(row: dict[str, Any]) -> None:
    found = difference(answer_in(row["ours"]), answer_in(row["theirs"]), row["level"])
    COMPARISON.check(row, [*parts(found)] if found else None)


OPTION = "{} Manager Policy {}-level Options not enabled, but option {}"
GATES = "failed to set feature gates from initial flags-based config"
ILL = "no healthy devices present; cannot allocate unhealthy devices"
REQUEST = "requested number of devices unavailable for v.example/nic. Requested: 2, Available: 1,"


@pytest.mark.parametrize(
    ("simplified", "stage", "message", "shown"),
    [
        (any_option, "cpu", OPTION.format("CPU", "Alpha", '"a" provided'), "one of the options"),
        (any_option, "cpu", OPTION.format("Topology", "Beta", '"a" provided'), "one of the"),
        (any_option, "cpu", 'unknown CPU Manager Policy option: "b"', "one of the options is"),
        (any_option, "cpu", 'unknown Topology Manager Policy option: "b"', "one of the options"),
        (any_option, "cpu", 'the minimum value of "c" should not be less than 8', "one of the"),
        (any_option, "cpu", 'bad value for option "c": x', "one of the options is refused"),
        (any_option, "cpu", "other", "other"),
        (
            any_gate,
            "config",
            "failed to set feature gates from initial flags-based config: A",
            None,
        ),
        (any_resource, "", f"No: {REQUEST} which is unexpected", "No: the devices of a resource"),
        (
            any_resource,
            "",
            "No: no healthy devices present; cannot allocate unhealthy devices x,",
            0,
        ),
        (any_resource, "", "No: cannot allocate unregistered device v.example/gpu,", "No: the "),
        (any_resource, "", "no", "no"),
    ],
)
def test_of_several_things_that_are_wrong_any_may_be_named(
    simplified: Any, stage: str, message: str, shown: str
) -> None:
    fate = messages.RefusedPod("Failed", "Error", message, message)
    refused = simplified(
        messages.StartRefused(stage, message)  # type: ignore[arg-type]
        if stage
        else messages.AdmissionRefused("Error", message, fate)
    )
    assert refused.message.startswith(shown or message.split(": ", maxsplit=1)[0])
    assert (refused.message == message) == (shown == message)
    if not stage:
        assert refused.pod.event == refused.pod.message == refused.message
    assert simplified(NO) == NO
    assert simplified(messages.Done()) == messages.Done()


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
