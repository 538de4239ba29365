"""Only listed fields are kept, and the paths of all others are reported."""

from __future__ import annotations

import json

import pytest

from builders.clusters import CONFIGURATION, NODE, POD, SECRETS, TOPOLOGY
from numaproof.collection import kept_fields
from numaproof.collection.kept_fields import keep


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (NODE, kept_fields.NODE),
        (POD, kept_fields.POD),
        (TOPOLOGY, kept_fields.TOPOLOGY),
        (CONFIGURATION, kept_fields.CONFIGURATION),
    ],
)
def test_nothing_confidential_is_kept(value: object, fields: kept_fields.Fields) -> None:
    kept, left_out = keep(value, fields)
    text = json.dumps([kept, *left_out])
    assert left_out
    assert not [secret for secret in SECRETS if secret in text]


def test_what_a_simulation_needs_is_kept() -> None:
    pod, _ = keep(POD, kept_fields.POD)
    assert pod["metadata"]["uid"] == "uid-packets"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    assert pod["spec"]["containers"][0] == {
        "name": "app",
        "resources": POD["spec"]["containers"][0]["resources"],  # type: ignore[index]
    }
    assert pod["status"]["phase"] == "Running"


def test_the_uid_of_a_static_pod_is_kept() -> None:
    annotations = {"kubernetes.io/config.hash": "0a1b", "other": "x"}
    kept, _ = keep({"metadata": {"annotations": annotations}}, kept_fields.POD)
    assert kept == {"metadata": {"annotations": {"kubernetes.io/config.hash": "0a1b"}}}


def test_unknown_fields_are_left_out_and_named() -> None:
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "a", "newField": {"token": "x"}}]}}
    kept, left_out = keep(pod, kept_fields.POD)
    assert kept == {"kind": "Pod", "spec": {"containers": [{"name": "a"}]}}
    assert left_out == {"spec.containers[].newField"}


def test_names_that_users_chose_are_not_reported() -> None:
    _, left_out = keep(NODE, kept_fields.NODE)
    assert {"metadata.labels", "metadata.annotations"} <= left_out
    assert not [path for path in left_out if "customer" in path]


def test_a_text_in_place_of_an_object_is_dropped() -> None:
    assert keep({"spec": "secret"}, kept_fields.POD) == ({"spec": None}, frozenset())
