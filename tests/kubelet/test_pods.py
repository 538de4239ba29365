"""Pods have an API server's defaults when they are bound to the node."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from builders.pods import container, pod
from numaproof.kubelet import pods

TWO = {"cpu": "2", "memory": "1Gi"}


def bound(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return pods.bind(pod("uid-a", containers or [container("app", {})], **spec), 0)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {}),
        ({"limits": TWO}, {"limits": TWO, "requests": TWO}),
        ({"requests": TWO}, {"requests": TWO}),
        (
            {"limits": TWO, "requests": {"cpu": "1"}},
            {"limits": TWO, "requests": {"cpu": "1", "memory": "1Gi"}},
        ),
        ({"limits": None, "requests": None}, {"limits": None, "requests": None}),
    ],
)
def test_limits_without_a_request_are_requests(
    resources: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = bound(container("app", resources), resources=resources)
    assert made["spec"]["containers"][0]["resources"] == expected
    assert made["spec"]["resources"] == expected


def test_a_container_without_resources_gets_them() -> None:
    assert bound({"name": "app", "resources": None})["spec"]["containers"][0]["resources"] == {}


def test_a_pod_belongs_to_the_node_and_needs_nothing_else() -> None:
    spec = bound(nodeName="elsewhere", automountServiceAccountToken=True)["spec"]
    assert spec["nodeName"] == "node"
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["image"] == "image"


def test_what_a_manifest_says_replaces_the_defaults() -> None:
    manifest = pod("uid-a", [{"name": "app", "image": "own"}], restartPolicy="Never")
    manifest["metadata"]["namespace"] = "other"
    manifest["status"] = {"phase": "Running"}
    before = copy.deepcopy(manifest)
    made = pods.bind(manifest, 0)
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["containers"][0]["image"] == "own"
    assert made["status"] == {"phase": "Running"}
    assert pods.place(made) == ("other", "uid-a")
    assert manifest == before


def test_pods_are_created_one_after_the_other() -> None:
    manifest = pod("uid-a", [])
    created = [pods.bind(manifest, n)["metadata"]["creationTimestamp"] for n in (0, 9, 60, 100_000)]
    assert created == sorted(created)
    assert created[:2] == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"]


def test_only_init_containers_that_are_no_sidecars_run_once() -> None:
    made = pods.bind(
        pod(
            "uid-a",
            [container("app", {})],
            [container("prepare", {}), container("proxy", {}, sidecar=True)],
        ),
        0,
    )
    assert list(pods.names(made)) == ["prepare", "proxy", "app"]
    assert [name for name in pods.names(made) if pods.runs_once(made, name)] == ["prepare"]


def test_a_pod_without_init_containers_may_say_so() -> None:
    made = bound(initContainers=None)
    assert list(pods.names(made)) == ["app"]
    assert not pods.runs_once(made, "app")


TWO_CPUS: dict[str, Any] = {
    "metadata": {"name": "a", "uid": "uid-a"},
    "spec": {
        "resources": {"requests": {"cpu": "3"}},
        "containers": [
            {"name": name, "resources": {"limits": {"cpu": "1", "memory": "1Mi"}}}
            for name in ("app", "log")
        ],
    },
}
WITHOUT_FIX = {"featureGates": {"PodLevelResourcesFixDefaulting": False}}


@pytest.mark.parametrize(
    ("version", "config", "resources"),
    [
        (
            "1.37",
            {},
            {
                "requests": {"cpu": "3", "memory": str(2 << 20)},
                "limits": {"cpu": "3", "memory": str(2 << 20)},
            },
        ),
        ("1.37", WITHOUT_FIX, {"requests": {"cpu": "3"}, "limits": {}}),
        ("1.36", {}, {"requests": {"cpu": "3"}, "limits": {}}),
        ("1.30", {}, {"requests": {"cpu": "3"}}),
        ("1.37", {"featureGates": {"NoGate": True}}, {"requests": {"cpu": "3"}}),
        ("1.37", {"featureGates": "all"}, {"requests": {"cpu": "3"}}),
    ],
)
def test_pod_level_resources_have_the_defaults_of_the_release(
    version: str, config: dict[str, Any], resources: dict[str, Any]
) -> None:
    rules = pods.level_rules(pods.enabled_gates(config, (), version), version)
    assert pods.bind(TWO_CPUS, 0, rules)["spec"]["resources"] == resources


def test_a_resize_changes_only_resources_and_counts_the_change() -> None:
    made = bound(container("app", {"limits": TWO}))
    manifest = bound({**container("app", {"limits": {**TWO, "cpu": "3"}}), "image": "other"})
    resized = pods.with_resources_of(made, manifest)
    assert resized["spec"]["containers"][0]["image"] == "image"
    assert pods.amounts(resized) == pods.amounts(manifest)
    assert (made["metadata"]["generation"], resized["metadata"]["generation"]) == (1, 2)
    assert pods.with_resources_of(resized, manifest) == resized


def test_amounts_do_not_depend_on_how_they_are_written() -> None:
    of = pods.amounts_of
    assert of({"limits": {"cpu": "1500m"}}) == of({"limits": {"cpu": "1.5"}})
    assert of({"limits": {"cpu": "1"}}) != of({"requests": {"cpu": "1"}})


def test_a_mark_is_another_for_each_generation() -> None:
    made = bound(container("app", {"limits": TWO}))
    again = pods.with_resources_of(made, bound(container("app", {})))
    marks = {
        pods.with_mark(one)["metadata"]["annotations"]["numaproof/generation"]
        for one in (made, again)
    }
    assert marks == {"1", "2"}


def test_resources_of_device_plugins_have_a_domain() -> None:
    wants = {"limits": {"cpu": 1, "x.example/nic": 1}}
    made = pods.bind(pod("uid-a", [container("app", wants)], [container("load", {})]), 0)
    assert pods.extended_resources(made) == {"x.example/nic"}
