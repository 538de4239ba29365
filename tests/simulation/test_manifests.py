"""Pods that the API server rejects are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from numaproof.inputs.documents import DocumentError
from numaproof.simulation.pods import PodOptions, Reading, read


def pod(spec: dict[str, Any], *containers: dict[str, Any]) -> dict[str, Any]:
    """A pod whose containers have these resources."""
    listed = [{"name": f"c{n}", "resources": one} for n, one in enumerate(containers)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": listed, **spec},
    }


def reading(thing: object) -> Reading:
    return read([("pod.yaml", json.dumps(thing))], PodOptions(("1.37",)))


def limits(**amounts: str) -> dict[str, Any]:
    return {"limits": amounts}


PAGES = {"hugepages-2Mi": "3Mi", "memory": "1Gi"}
TWO = limits(cpu="2", memory="1Gi")
CLAIM = {"claims": [{"name": "gpu"}]}
HALF = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}

REJECTED: list[tuple[dict[str, Any], str, str]] = [
    (
        pod({"resources": limits(cpu="1", memory="1Gi")}, TWO),
        "spec.containers[0].resources.limits.cpu",
        "limit of 2 exceeds the pod's limit of 1",
    ),
    (
        pod({"resources": {"requests": {"cpu": "1"}}}, TWO),
        "spec.resources.requests.cpu",
        "request of 1 is less than the containers' requests of 2",
    ),
    (
        pod({"resources": limits(cpu="2")}, TWO, HALF),
        "spec.resources.limits.cpu",
        "limit of 2 is less than the pod's requests of 3",
    ),
    (
        pod({"resources": {"limits": {"vendor.example/nic": "1"}}}, TWO),
        "spec.resources.limits.vendor.example/nic",
        "not a resource of whole pods",
    ),
    (pod({}, {**TWO, **CLAIM}), "spec.containers[0].resources.claims[0]", "no claim 'gpu'"),
    (
        pod({}, {"limits": PAGES}),
        "spec.containers[0].resources.limits.hugepages-2Mi",
        "3Mi is not a multiple of the page size",
    ),
    (
        pod({}, {"limits": {"hugepages-x": "2Mi", "cpu": "1"}}),
        "spec.containers[0].resources.limits.hugepages-x",
        "2Mi is not a multiple of the page size",
    ),
    (
        pod({}, {"limits": {"hugepages-2Mi": "4Mi"}}),
        "spec.containers[0].resources",
        "huge pages require a request for cpu or memory",
    ),
]


@pytest.mark.parametrize(("thing", "field", "message"), REJECTED, ids=[one[2] for one in REJECTED])
def test_a_pod_that_the_api_server_rejects_is_an_error(
    thing: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(DocumentError) as raised:
        reading(thing)
    assert (raised.value.field, raised.value.message) == (field, message)
    assert raised.value.fix


ACCEPTED = [
    pod({"resources": limits(cpu="3")}, TWO, HALF),
    pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}, {**TWO, **CLAIM}),
    pod({}, limits(cpu="1", **{"hugepages-2Mi": "4Mi", "hugepages-1Gi": "0"})),
    pod({"resources": {**limits(cpu="4"), "requests": {"cpu": "3"}}}, TWO, HALF),
]


@pytest.mark.parametrize("thing", ACCEPTED)
def test_a_pod_that_the_api_server_accepts_is_read(thing: dict[str, Any]) -> None:
    assert len(reading(thing).pods) == 1


@pytest.mark.parametrize(
    ("version", "message", "fix"),
    [
        (None, "the object has no apiVersion", "add apiVersion: v1"),
        ("apps/v1", "Kubernetes serves no Pod of 'apps/v1'", "set apiVersion: v1"),
    ],
)
def test_a_pod_needs_its_api_version(version: str | None, message: str, fix: str) -> None:
    thing = pod({}, TWO)
    del thing["apiVersion"]
    with pytest.raises(DocumentError) as raised:
        reading({**thing, **({"apiVersion": version} if version else {})})
    assert (raised.value.message, raised.value.fix) == (message, fix)


@pytest.mark.parametrize(
    ("key", "name", "ok"),
    [
        ("name", "X_Y", False),
        ("name", "a.b-1", True),
        ("name", "a" * 254, False),
        ("generateName", "run-", True),
        ("generateName", "Run-", False),
        ("namespace", "a.b", False),
        ("namespace", "a-b", True),
    ],
)
def test_names_are_those_that_the_api_server_accepts(key: str, name: str, *, ok: bool) -> None:
    thing = pod({}, TWO)
    metadata = {"name": "a", key: name} if key == "namespace" else {key: name}
    try:
        reading({**thing, "metadata": metadata})
    except DocumentError as error:
        assert (error.field, error.message) == (f"metadata.{key}", f"invalid name {name!r}")  # noqa: PT017 - valid names raise nothing
        assert not ok
    else:
        assert ok


def test_a_fraction_of_a_byte_is_named() -> None:
    (note,) = reading(pod({}, limits(cpu="1500m", memory="400m"))).notes
    assert note.endswith("container c0: memory 400m is a fraction of a byte; is it 400Mi?")


def test_a_number_that_begins_with_zero_is_octal() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
    text += "  containers: [{name: c, resources: {limits: {cpu: 010, memory: '010'}}}]\n"
    text += "  volumes: [{name: v, configMap: {name: m, defaultMode: 0644}}]\n"
    spec = read([("pod.yaml", text)]).pods[0].manifest["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": 8, "memory": "010"}
    assert spec["volumes"][0]["configMap"]["defaultMode"] == 0o644
