"""What the simulation does not evaluate is listed."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.simulation.evaluation_gaps import EvaluationGap, of_pod, summarize


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", **fields}


PLAIN = {"containers": [container(resources={"limits": {"cpu": 1, "hugepages-2Mi": "2Mi"}})]}

GAPS: dict[str, dict[str, Any]] = {
    "resource claims (DRA)": {"resourceClaims": [{"name": "gpu"}]},
    "nodeSelector": {"nodeSelector": {"pool": "a"}},
    "affinity": {"affinity": {"nodeAffinity": {}}},
    "topologySpreadConstraints": {"topologySpreadConstraints": [{"maxSkew": 1}]},
    "tolerations": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "schedulingGates": {"schedulingGates": [{"name": "quota"}]},
    "runtimeClassName": {"runtimeClassName": "kata"},
    "ephemeral-storage": {
        "containers": [container(resources={"requests": {"ephemeral-storage": "1Gi"}})]
    },
    "hostPort": {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
    "persistent volumes": {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
}


@pytest.mark.parametrize("start", GAPS)
def test_what_a_pod_asks_for_is_a_gap(start: str) -> None:
    (gap,) = of_pod({**PLAIN, **GAPS[start]})
    assert gap.startswith(start)


def test_what_is_evaluated_is_no_gap() -> None:
    assert of_pod({**PLAIN, "overhead": {"cpu": 1}, "runtimeClassName": "kata"}) == ()


def test_tolerations_of_the_api_server_are_no_gap() -> None:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    assert of_pod({**PLAIN, "tolerations": [{"key": key} for key in keys]}) == ()


RESIZING: list[dict[str, Any]] = [
    {"resize": "InProgress"},
    {"conditions": [{"type": "PodResizePending"}]},
    {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]},
]


@pytest.mark.parametrize("status", RESIZING)
def test_a_resize_in_place_is_a_gap(status: dict[str, Any]) -> None:
    spec = {"containers": [container(resources={"requests": {"cpu": "4"}})]}
    (gap,) = of_pod(spec, status)
    assert gap.startswith("resize in place")


def test_a_pod_with_its_own_resources_is_not_resized() -> None:
    spec = {"containers": [container(resources={"requests": {"cpu": "4"}})]}
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}]}
    assert of_pod(spec, status) == ()


def test_gaps_are_grouped() -> None:
    pods = [(f"p{number}", ("x",)) for number in range(5)]
    assert summarize(pods) == (EvaluationGap("x", 5, ("p0", "p1", "p2")),)
