"""Pods as the API server has them once they are bound to the node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from numaproof.conformance.claims.needs import in_force
from numaproof.kubelet import settings
from numaproof.protocol import messages
from numaproof.reference.config.gates import GateError
from numaproof.reference.deviations.releases import release
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import SYSTEM_PRIORITIES, read_container
from numaproof.reference.pods.pod_level import PodRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from numaproof.protocol.messages import KubeletConfiguration, Pod

    Amounts = dict[str, dict[tuple[str, str], Fraction]]

NAMESPACE = "default"
_MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS = ("initContainers", "containers")

_OF_NODE = f"-{settings.NODE}"
"""A kubelet adds the node's name to the names of static pods."""

_WITHOUT_DEFAULTS = ("ignored", "shared pool alone")

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


def level_rules(gates: Mapping[str, bool], version: str) -> type[PodRules] | None:
    """The API server's rules for pod-level resources; it has the kubelet's `enabled_gates`.

    None if it fills in nothing, or if the feature gates are invalid.
    """
    if not gates:
        return None
    known = release(version).under(gates)
    return None if known.pod_level_under(gates) in _WITHOUT_DEFAULTS else known.rule(PodRules)


def enabled_gates(
    config: KubeletConfiguration, flags: tuple[str, ...], version: str
) -> Mapping[str, bool]:
    """The kubelet's feature gates; empty if they are invalid."""
    try:
        return release(version).enabled_gates(in_force(config, flags, version))
    except (GateError, AttributeError):
        return {}


def bind(pod: Pod, number: int, rules: type[PodRules] | None = None) -> dict[str, Any]:
    """A pod with the API server's defaults, bound to the node.

    Args:
        pod: the manifest.
        number: its place in the order of creation.
        rules: the rules for pod-level resources; None if they have no defaults.
    """
    spec = {**_SPEC, **pod["spec"], **_ALONE}
    for kind in _KINDS:
        if kind in spec:
            spec[kind] = [_with_defaults(one) for one in spec[kind] or ()]
    if "resources" in spec:
        own = _with_requests(spec["resources"])
        spec["resources"] = _with_pod_defaults(own, spec, rules) if rules else own
    is_static = messages.is_static(pod)
    priority = SYSTEM_PRIORITIES.get(spec.get("priorityClassName") or "")
    if priority is not None and not is_static:
        spec["priority"] = priority
    metadata = {
        "namespace": NAMESPACE,
        **pod["metadata"],
        "generation": 1,
        # The kubelet admits the pods of a node in the order of their creation.
        "creationTimestamp": f"{_MIDNIGHT + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}",
    }
    if is_static:
        metadata["name"] += _OF_NODE
    status = {"phase": "Pending", **(pod.get("status") or {})}
    return {"metadata": metadata, "spec": spec, "status": status}


def _with_defaults(container: dict[str, Any]) -> dict[str, Any]:
    resources = _with_requests(container.get("resources") or {})
    return {**_CONTAINER, **container, "resources": resources}


def _with_requests(resources: dict[str, Any]) -> dict[str, Any]:
    """Limits without a request are requests as well."""
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**resources, **({"requests": requests} if requests else {})}


def _with_pod_defaults(
    own: dict[str, Any], spec: dict[str, Any], rules: type[PodRules]
) -> dict[str, Any]:
    members = tuple(
        read_container(one, kind, init=kind == _KINDS[0])
        for kind in _KINDS
        for one in spec.get(kind) or ()
    )
    made = rules.as_one(own.get("requests") or {}, own.get("limits") or {}, members)
    return {**own, "requests": dict(made.requests), "limits": dict(made.limits)}


def with_resources_of(pod: dict[str, Any], manifest: dict[str, Any]) -> dict[str, Any]:
    """A bound pod with the containers' resources of another, as `pods/resize` changes them."""
    resources = {one["name"]: one["resources"] for one in _containers(manifest)}
    spec = {
        **pod["spec"],
        **{
            kind: [{**one, "resources": resources[one["name"]]} for one in pod["spec"][kind]]
            for kind in _KINDS
            if kind in pod["spec"]
        },
    }
    changes = spec != pod["spec"]
    generation = pod["metadata"]["generation"] + changes
    return {**pod, "metadata": {**pod["metadata"], "generation": generation}, "spec": spec}


def with_mark(pod: dict[str, Any]) -> dict[str, Any]:
    """A bound pod with another annotation, which makes the kubelet sync it."""
    metadata = pod["metadata"]
    annotations = {"numaproof/generation": str(metadata["generation"])}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def amounts(pod: dict[str, Any]) -> Amounts:
    """By container: the amounts of a pod's requests and limits."""
    return {one["name"]: amounts_of(one["resources"]) for one in _containers(pod)}


def amounts_of(resources: dict[str, Any]) -> dict[tuple[str, str], Fraction]:
    """By kind, such as ``limits``, and resource: the amounts of a container's resources."""
    return {
        (kind, resource): quantity.parse(text)
        for kind, quantities in resources.items()
        for resource, text in quantities.items()
    }


def extended_resources(pod: dict[str, Any]) -> set[str]:
    """The resources that a pod requests and device plugins may report."""
    return {
        name
        for one in _containers(pod)
        for name in one["resources"].get("requests") or ()
        if "/" in name
    }


def manifest_of_static(pod: dict[str, Any]) -> dict[str, Any]:
    """The manifest in a file that makes a kubelet run a bound pod as a static one."""
    metadata = pod["metadata"]
    name = metadata["name"].removesuffix(_OF_NODE)
    named = {"name": name, "namespace": metadata["namespace"], "uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": pod["spec"]}


def has_init_containers(pod: dict[str, Any]) -> bool:
    """Whether a pod has init containers or sidecars."""
    return bool(pod["spec"].get("initContainers"))


def _containers(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A pod's containers, init containers first."""
    for kind in _KINDS:
        yield from pod["spec"].get(kind) or ()


def place(pod: dict[str, Any]) -> tuple[str, str]:
    """The namespace and the name of a bound pod."""
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def full_name(pod: dict[str, Any]) -> str:
    """The namespace and the name of a bound pod as the kubelet logs them."""
    return "/".join(place(pod))


def names(pod: dict[str, Any]) -> Iterator[str]:
    """The names of a pod's containers, init containers first."""
    return (one["name"] for one in _containers(pod))


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


def serves(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The containers that run as long as the pod does: sidecars and app containers."""
    for kind in _KINDS:
        yield from (one for one in pod["spec"].get(kind) or () if not runs_once(pod, one["name"]))


def has_own_memory(container: dict[str, Any]) -> bool:
    """Whether a container is Guaranteed by itself: it requests its limits of CPU and memory."""
    limits, requests = (container["resources"].get(kind) or {} for kind in ("limits", "requests"))
    return all(
        name in limits and quantity.parse(limits[name]) == quantity.parse(requests[name]) > 0
        for name in ("cpu", "memory")
    )


def has_own_cpus(container: dict[str, Any]) -> bool:
    """Whether a container is Guaranteed by itself and requests whole CPUs."""
    return has_own_memory(container) and (
        quantity.parse(container["resources"]["limits"]["cpu"]).denominator == 1
    )
