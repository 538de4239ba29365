"""Pods as the API server has them once they are bound to the node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from numaproof.kubelet import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import Pod

NAMESPACE = "default"
_MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS = ("initContainers", "containers")

_SPEC: dict[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "Default",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 0,
}
_ALONE = {
    "nodeName": settings.NODE,
    # There are no services, and nobody who issues tokens.
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}
_CONTAINER = {
    "image": "image",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


def bind(pod: Pod, number: int) -> dict[str, Any]:
    """A pod with the API server's defaults, bound to the node.

    Args:
        pod: the manifest.
        number: its place in the order of creation.
    """
    spec = {**_SPEC, **pod["spec"], **_ALONE}
    for kind in _KINDS:
        if kind in spec:
            spec[kind] = [_with_defaults(one) for one in spec[kind] or ()]
    if "resources" in spec:
        spec["resources"] = _with_requests(spec["resources"])
    metadata = {
        "namespace": NAMESPACE,
        **pod["metadata"],
        # The kubelet admits the pods of a node in the order of their creation.
        "creationTimestamp": f"{_MIDNIGHT + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}",
    }
    status = {"phase": "Pending", **(pod.get("status") or {})}
    return {"metadata": metadata, "spec": spec, "status": status}


def _with_defaults(container: dict[str, Any]) -> dict[str, Any]:
    resources = _with_requests(container.get("resources") or {})
    return {**_CONTAINER, **container, "resources": resources}


def _with_requests(resources: dict[str, Any]) -> dict[str, Any]:
    """Limits without a request are requests as well."""
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**resources, **({"requests": requests} if requests else {})}


def place(pod: dict[str, Any]) -> tuple[str, str]:
    """The namespace and the name of a bound pod."""
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def full_name(pod: dict[str, Any]) -> str:
    """The namespace and the name of a bound pod as the kubelet logs them."""
    return "/".join(place(pod))


def names(pod: dict[str, Any]) -> Iterator[str]:
    """The names of a pod's containers, init containers first."""
    for kind in _KINDS:
        yield from (one["name"] for one in pod["spec"].get(kind) or ())


def ends(pod: dict[str, Any], name: str) -> bool:
    """Whether a container ends for good once it has succeeded."""
    if any(one["name"] == name for one in pod["spec"].get("initContainers") or ()):
        return runs_once(pod, name)
    return bool(pod["spec"]["restartPolicy"] != "Always")


def runs_once(pod: dict[str, Any], name: str) -> bool:
    """Whether a container is an init container that must end before the next one starts."""
    return any(
        one["name"] == name and one.get("restartPolicy") != "Always"
        for one in pod["spec"].get("initContainers") or ()
    )
