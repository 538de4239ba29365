"""Which pods of a cluster's listing hold resources on a node."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.simulation.pods_on_node import node_names, pods_on_node, uid_on_node


def pod(name: str, node: str = "", phase: str = "", reason: str = "", **about: Any) -> Any:
    spec = {"nodeName": node} if node else {}
    status = {"phase": phase, "reason": reason} if phase else {}
    return {"metadata": {"name": name, **about}, "spec": spec, "status": status}


def test_pods_that_have_ended_hold_nothing() -> None:
    pods = [
        pod("a", "n1", "Running"),
        pod("b", "n1", "Succeeded", namespace="batch"),
        pod("c", "n1", "Failed", "TopologyAffinityError"),
    ]
    found = pods_on_node(pods)
    assert found.on_node == (0,)
    assert list(found.lines()) == [
        "left out: 1 pod has ended (Failed: TopologyAffinityError): default/c",
        "left out: 1 pod has ended (Succeeded): batch/b",
    ]


def test_pods_of_other_nodes_are_left_out() -> None:
    pods = [pod(f"p{n}", "n2", "Running") for n in range(5)] + [pod("own", "n1", "Running")]
    found = pods_on_node(pods, "n1")
    assert found.on_node == (5,)
    assert list(found.lines()) == [
        "left out: 5 pods are on another node (n2): default/p0, default/p1, default/p2 and 2 more"
    ]


def test_pods_that_are_not_scheduled_are_left_out_of_a_node() -> None:
    pods = [pod("a", "n1", "Running"), pod("b", "", "Pending")]
    found = pods_on_node(pods)
    assert found.on_node == (0,)
    assert list(found.lines()) == ["left out: 1 pod is not scheduled (Pending): default/b"]


def test_pods_that_are_not_scheduled_are_candidates_without_a_node() -> None:
    assert pods_on_node([pod("b", "", "Pending")]).on_node == (0,)


def test_manifests_are_held() -> None:
    assert pods_on_node([pod("a", "n1", "Running"), pod("new")], "n1").on_node == (0, 1)


def test_a_pod_being_deleted_is_held_until_its_containers_end() -> None:
    found = pods_on_node([pod("a", "n1", "Running", deletionTimestamp="2026-01-01T00:00:00Z")])
    assert found.on_node == (0,)
    assert list(found.lines()) == [
        "counted until the containers end: 1 pod with deletionTimestamp: default/a"
    ]


def test_nodes_of_pods_that_have_ended_do_not_count() -> None:
    pods = [pod("a", "n2", "Running"), pod("b", "n1", "Pending"), pod("c", "n3", "Failed")]
    assert node_names(pods) == ("n1", "n2")


def test_a_static_pod_has_the_uid_of_its_annotation() -> None:
    annotations = {"kubernetes.io/config.hash": "f00d"}
    assert uid_on_node(pod("a", uid="u1")) == "u1"
    assert uid_on_node(pod("a", uid="u1", annotations=annotations)) == "f00d"


@pytest.mark.parametrize("malformed", [{}, {"metadata": [], "spec": 1, "status": "x"}])
def test_a_malformed_pod_is_held(malformed: Any) -> None:
    assert pods_on_node([malformed]).on_node == (0,)
