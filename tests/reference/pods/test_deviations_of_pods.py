"""Pods as releases before the newest read them."""

from __future__ import annotations

from typing import Any

import pytest

from builders.pods import numbered
from numaproof.reference.deviations import releases
from numaproof.reference.deviations.pods import (
    ClassBySums,
    DefaultsBesideLimits,
    EmptyPodLevelDecides,
)
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod_level import PodRules


def amounts(cpu: str, memory: str = "64Mi") -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        (
            [
                {"requests": amounts("2"), "limits": amounts("1")},
                {"requests": amounts("1"), "limits": amounts("2")},
            ],
            "Guaranteed",
        ),
        ([{"limits": amounts("1")}, {"limits": {"cpu": "1"}}], "Burstable"),
        ([{"limits": amounts("1")}, {}], "Burstable"),
        ([{}, {"limits": amounts("0", "0")}], "BestEffort"),
    ],
)
def test_the_qos_class_was_that_of_the_sums(resources: list[Any], qos: str) -> None:
    assert read_pod(numbered("u", resources), "ignored", ClassBySums).qos == qos


@pytest.mark.parametrize("own", [{}, {"limits": {}}, {"requests": {}, "limits": {}}])
def test_pod_level_resources_that_name_nothing_made_a_pod_best_effort(own: dict[str, Any]) -> None:
    pod = numbered("u", [{"limits": amounts("2")}], resources=own)
    assert read_pod(pod, "QoS class", EmptyPodLevelDecides).qos == "BestEffort"
    assert read_pod(pod, "QoS class").qos == "Guaranteed"


def test_pod_level_limits_were_not_filled_in() -> None:
    members = read_pod(numbered("u", [{"limits": amounts("2")}])).containers
    as_one = DefaultsBesideLimits.as_one({"cpu": "2"}, {}, members)
    assert (as_one.requests, as_one.limits) == ({"cpu": "2"}, {})


@pytest.mark.parametrize(
    ("gate", "override"),
    [
        ("PodLevelResourcesFixDefaulting", DefaultsBesideLimits),
        ("PodLevelResourcesFixKubeletQOSClass", EmptyPodLevelDecides),
    ],
)
def test_a_gate_that_is_off_brings_the_earlier_reading_back(gate: str, override: type) -> None:
    newest = releases.release("1.37")
    assert not issubclass(newest.under({gate: True}).rule(PodRules), override)
    assert issubclass(newest.under({gate: False}).rule(PodRules), override)
    older = releases.release("1.36")
    assert older.under({}).deviations == older.deviations
