"""Comparing two answers to the same call at a level; `comparison.yaml` has pairs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from builders.answers import answer_in
from builders.differences import parts
from builders.tables import Table
from numaproof.conformance.judging.oracle import difference, disagreement
from numaproof.protocol import codec, messages

COMPARISON = Table(__file__, "comparison.yaml")


@COMPARISON
def test_answers_are_compared_at_a_level(row: dict[str, Any]) -> None:
    found = difference(answer_in(row["ours"]), answer_in(row["theirs"]), row["level"])
    COMPARISON.check(row, [*parts(found)] if found else None)


OPTIONS = {"topologyManagerPolicyOptions": {"a": "", "b": ""}}
START = messages.StartArgs(config=OPTIONS, state_dir="/state")
GATES = messages.StartArgs(config={"featureGates": {"a": True, "b": True}}, state_dir="/state")
LIMITS = {"resources": {"limits": {"v.example/a": 1, "v.example/b": 1}}}
ADMIT = messages.AdmitArgs({"spec": {"containers": [LIMITS]}})


@pytest.mark.parametrize(
    ("args", "template"),
    [
        *(
            (START, said)
            for said in (
                'CPU Manager Policy Alpha-level Options not enabled, but option "{}" provided',
                "Topology Manager Policy Beta-level Options not enabled, but option {} provided",
                'unknown CPU Manager Policy option: "{}"',
                'unknown Topology Manager Policy option: "{}"',
                'the minimum value of "{}" should not be less than 8',
                'bad value for option "{}": x',
            )
        ),
        (GATES, "failed to set feature gates from initial flags-based config: unrecognized: {}"),
        *(
            (ADMIT, f"No: {said}")
            for said in (
                "requested number of devices unavailable for {}. Requested: 2, Available: 1, and",
                "no healthy devices present; cannot allocate unhealthy devices {},",
                "cannot allocate unregistered device v.example/{},",
            )
        ),
    ],
)
def test_any_of_several_differences_may_be_named(args: Any, template: str) -> None:
    def refusals(template: str) -> list[messages.Answer]:
        if args is not ADMIT:
            return [messages.StartRefused("config", template.format(name)) for name in "ab"]
        texts = [template.format(name) for name in "ab"]
        pods = [messages.RefusedPod("Failed", "Error", text, text) for text in texts]
        return [messages.AdmissionRefused("Error", pod.message, pod) for pod in pods]

    assert disagreement(args, *refusals(template), "kubelet") is None
    assert disagreement(args, *refusals("other words about {}"), "kubelet")
    alone = messages.StartArgs(config={}, state_dir="/state")
    assert disagreement(alone, *refusals(template), "kubelet")


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
def test_omitted_fields_equal_empty_and_null_ones(operation: str, text: str, empty: str) -> None:
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
