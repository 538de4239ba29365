from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders.pods import numbered
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.reference.pods.pod_level import PodRules

if TYPE_CHECKING:
    from numaproof.reference.pods.pod_level import PodLevel


def manifest(*resources: dict[str, Any], init: Any = (), **spec: Any) -> dict[str, Any]:
    return numbered("u", resources, init, **spec)


def amounts(cpu: str, memory: str = "64Mi") -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


def test_the_qos_class_in_the_status_wins_over_the_computed_one() -> None:
    pod = read_pod({**manifest({"limits": amounts("2")}), "status": {"qosClass": "Burstable"}})
    assert pod.exclusive_cpus(pod.containers[0]) == 0


@pytest.mark.parametrize(
    ("own", "level", "qos", "exclusive"),
    [
        ({"limits": amounts("4"), "requests": amounts("4")}, "ignored", "Guaranteed", 2),
        ({"limits": amounts("4"), "requests": amounts("4")}, "QoS class", "Guaranteed", 2),
        ({"limits": amounts("4"), "requests": amounts("4")}, "shared pool", "Guaranteed", 0),
        ({"limits": amounts("4")}, "QoS class", "Burstable", 0),
        ({"limits": amounts("2")}, "QoS class", "Guaranteed", 2),
        ({"requests": amounts("4")}, "QoS class", "Guaranteed", 2),
        ({"requests": amounts("1")}, "QoS class", "Burstable", 0),
        ({}, "QoS class", "Guaranteed", 2),
        ({"limits": {"example.com/nic": "1"}}, "QoS class", "Guaranteed", 2),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, "shared pool", "Guaranteed", 0),
        ({"requests": amounts("4")}, "shared pool alone", "Guaranteed", 0),
        ({}, "shared pool alone", "Guaranteed", 2),
    ],
)
def test_resources_of_the_pod_do_what_the_release_makes_of_them(
    own: dict[str, Any], level: PodLevel, qos: str, exclusive: int
) -> None:
    pod = read_pod(manifest({"limits": amounts("2")}, resources=own), level)
    assert pod.qos == qos
    assert pod.exclusive_cpus(pod.containers[0]) == exclusive


@pytest.mark.parametrize(
    ("containers", "own", "limits"),
    [
        ([{"limits": amounts("2")}], {"requests": amounts("4")}, {"cpu": 4, "memory": 64 << 20}),
        (
            [{"limits": amounts("2")}, {"limits": amounts("3")}],
            {"requests": {"cpu": "1"}},
            {"cpu": 5, "memory": 128 << 20},
        ),
        (
            [{"limits": amounts("2")}, {"limits": {"cpu": "3"}}],
            {"requests": {"cpu": 1}},
            {"cpu": 5},
        ),
        ([], {"requests": {"cpu": "1"}}, {}),
    ],
)
def test_a_pod_is_limited_to_what_its_containers_are_limited_to_and_never_below_its_requests(
    containers: list[dict[str, Any]], own: dict[str, Any], limits: dict[str, int]
) -> None:
    members = read_pod(manifest(*containers)).containers
    found = PodRules.as_one(own["requests"], {}, members).limits
    assert {kind: quantity.parse(limit) for kind, limit in found.items()} == limits


def test_pod_level_requests_are_filled_in_without_limits_of_the_pod() -> None:
    own = {"requests": {"memory": "1Gi"}}
    pod = read_pod(manifest({"requests": {"cpu": "2"}}, resources=own), "budget")
    assert pod.budget == {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        ({}, "metadata must be an object"),
        ({"metadata": {}}, "metadata.uid"),
        ({"metadata": {"uid": ""}, "spec": {"containers": []}}, "metadata.uid"),
        ({"metadata": {"uid": 5}, "spec": {"containers": []}}, "metadata.uid"),
        ({"metadata": {"uid": "u"}}, "spec must be an object"),
        (
            {"metadata": {"uid": "u"}, "spec": {"containers": 1e300}},
            "spec.containers must be a list",
        ),
        ({"metadata": {"uid": "u"}, "spec": {"containers": [5]}}, r"spec.containers\[0\] must"),
        ({"metadata": {"uid": "u"}, "spec": {"containers": [{}]}}, r"spec.containers\[0\].name"),
        (manifest({"limits": {"cpu": "x"}}), r"spec.containers\[0\].resources.limits.cpu"),
        (manifest({"limits": {"cpu": []}}), r"spec.containers\[0\].resources.limits.cpu is a list"),
        (
            manifest({"limits": {"cpu": {"a": 1}}}),
            'cpu is an object; it must be a quantity such as "2"',
        ),
        (manifest({"limits": {"cpu": True}}), "cpu is true or false; it must be a quantity"),
        (
            {
                "metadata": {"uid": "u"},
                "spec": {"containers": [], "resources": {"limits": {"cpu": ["1"]}}},
            },
            "spec.resources.limits.cpu is a list",
        ),
    ],
)
def test_a_manifest_that_is_no_pod_is_refused_by_field(bad: dict[str, Any], place: str) -> None:
    with pytest.raises(PodError, match=place):
        read_pod(bad, "QoS class")


def test_a_limit_that_is_null_is_zero() -> None:
    (container,) = read_pod(manifest({"limits": {"cpu": None}})).containers
    assert container.limits == {"cpu": 0}
