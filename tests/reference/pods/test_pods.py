from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from builders.pods import Sidecar, numbered
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


def test_what_a_pod_does_not_ask_for_it_asks_for_with_its_containers() -> None:
    own = {"limits": amounts("4", "1Gi")}
    apps = [{"requests": amounts(cpu, "64Mi")} for cpu in ("1500m", "300u")]
    budget = read_pod(manifest(*apps, resources=own), "budget").budget
    assert budget is not None
    assert quantity.parse(budget["cpu"]) == Fraction(15003, 10000)
    assert quantity.exact(budget["memory"]) == 128 << 20


@pytest.mark.parametrize(("requested", "cpus"), [("4", 4), ("2", 0)])
def test_a_budget_is_of_exclusive_cpus_only_in_the_class_guaranteed(
    requested: str, cpus: int
) -> None:
    own = {"limits": amounts("4"), "requests": amounts(requested)}
    pod = read_pod(manifest({}, resources=own), "budget")
    assert pod.budget is not None
    assert pod.exclusive_cpus_at_once() == cpus


@pytest.mark.parametrize(
    ("resources", "qos", "exclusive"),
    [
        ({}, "BestEffort", 0),
        ({"limits": {"memory": "200Mi"}, "requests": {"memory": "100Mi"}}, "Burstable", 0),
        ({"limits": amounts("2", "200Mi"), "requests": amounts("1", "100Mi")}, "Burstable", 0),
        ({"limits": amounts("2"), "requests": amounts("2")}, "Guaranteed", 2),
        ({"limits": amounts("1.5"), "requests": amounts("1.5")}, "Guaranteed", 0),
        ({"limits": amounts("2")}, "Guaranteed", 2),
        ({"requests": amounts("2")}, "Burstable", 0),
        ({"limits": {"cpu": "2"}}, "Burstable", 0),
        ({"limits": amounts("0")}, "Burstable", 0),
    ],
)
def test_qos_class_and_exclusive_cpus_follow_from_requests_and_limits(
    resources: dict[str, Any], qos: str, exclusive: int
) -> None:
    pod = read_pod(manifest(resources))
    assert pod.qos == qos
    assert pod.exclusive_cpus(pod.containers[0]) == exclusive


def test_one_container_without_limits_makes_the_whole_pod_burstable() -> None:
    pod = read_pod(manifest({"limits": amounts("2")}, {}))
    assert pod.qos == "Burstable"


def test_the_qos_class_in_the_status_wins_over_the_computed_one() -> None:
    pod = read_pod({**manifest({"limits": amounts("2")}), "status": {"qosClass": "Burstable"}})
    assert pod.exclusive_cpus(pod.containers[0]) == 0


def test_sidecars_count_beside_everything_that_starts_after_them() -> None:
    init = [
        {"limits": amounts("5")},
        Sidecar({"limits": amounts("2")}),
        {"limits": amounts("4")},
    ]
    small = read_pod(manifest({"limits": amounts("1")}, init=init))
    assert small.exclusive_cpus_at_once() == 6
    large = read_pod(manifest({"limits": amounts("8")}, init=init))
    assert large.exclusive_cpus_at_once() == 10


def test_only_an_init_container_can_be_a_sidecar() -> None:
    pod = read_pod(manifest(Sidecar()))
    assert not pod.containers[0].sidecar


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


def test_containers_do_not_make_up_for_one_another_in_the_qos_class() -> None:
    more = {"requests": amounts("2"), "limits": amounts("1")}
    less = {"requests": amounts("1"), "limits": amounts("2")}
    assert read_pod(manifest(more, less)).qos == "Burstable"


def test_a_limit_of_the_pod_that_no_container_asks_for_is_its_request_as_well() -> None:
    pod = read_pod(manifest({}, resources={"limits": amounts("2")}), "QoS class")
    assert pod.qos == "Guaranteed"


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
