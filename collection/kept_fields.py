"""The fields of a node's objects that get into an archive; everything else is left out.

The lists name what `numaproof` reads. Anything else, known or not, can be confidential: variables,
commands, images, annotations, labels, volumes, addresses.
"""

from __future__ import annotations

from typing import Any

from numaproof.reference.config.fields import DECODED

Fields = dict[str, "Fields"]
"""The fields to keep, each with those inside it; all, if it names none."""

WHOLE: Fields = {}


def _fields(names: str, **inner: Fields) -> Fields:
    return {**dict.fromkeys(names.split(), WHOLE), **inner}


_HEAD = "apiVersion kind"
_RESOURCES = _fields("limits requests", claims=_fields("name request"))
_CONTAINER = _fields("name restartPolicy", resources=_RESOURCES)
_STATE = {
    "running": _fields("startedAt"),
    "terminated": _fields("exitCode finishedAt reason startedAt"),
    "waiting": _fields("reason"),
}
_CONTAINER_STATUS = _fields(
    "name allocatedResources ready started", resources=_RESOURCES, state=_STATE
)
_OWNER = _fields("apiVersion kind name controller")

_STATIC_POD = (
    "kubernetes.io/config.hash",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
)
"""Annotations of a static pod; the first is its uid in the kubelet's checkpoints."""

POD: Fields = _fields(
    _HEAD,
    metadata=_fields(
        "name namespace uid creationTimestamp deletionTimestamp deletionGracePeriodSeconds",
        annotations=dict.fromkeys(_STATIC_POD, WHOLE),
        ownerReferences=_OWNER,
    ),
    spec=_fields(
        "nodeName overhead preemptionPolicy priority priorityClassName restartPolicy",
        containers=_CONTAINER,
        initContainers=_CONTAINER,
        ephemeralContainers=_CONTAINER,
        resources=_RESOURCES,
        resourceClaims=_fields("name resourceClaimName resourceClaimTemplateName"),
    ),
    status=_fields(
        "phase qosClass reason startTime resize allocatedResources",
        containerStatuses=_CONTAINER_STATUS,
        initContainerStatuses=_CONTAINER_STATUS,
        resourceClaimStatuses=_fields("name resourceClaimName"),
        resources=_RESOURCES,
    ),
)

_LABELS = (
    "feature.node.kubernetes.io/cpu-hardware_multithreading",
    "feature.node.kubernetes.io/memory-numa",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
)
"""Labels that describe a node's hardware."""

NODE: Fields = _fields(
    _HEAD,
    metadata=_fields("name", labels=dict.fromkeys(_LABELS, WHOLE)),
    status=_fields(
        "allocatable capacity",
        nodeInfo=_fields("architecture kernelVersion kubeletVersion operatingSystem osImage"),
    ),
)

TOPOLOGY: Fields = _fields(
    f"{_HEAD} topologyPolicies",
    metadata=_fields("name", annotations={"node.koordinator.sh/cpu-topology": WHOLE}),
    zones=_fields(
        "name type",
        costs=_fields("name value"),
        resources=_fields("name allocatable available capacity"),
    ),
)

CONFIGURATION: Fields = {"kubeletconfig": dict.fromkeys(("apiVersion", "kind", *DECODED), WHOLE)}


def keep(value: Any, fields: Fields) -> tuple[Any, frozenset[str]]:
    """Returns a value with some of its fields, and the paths of those that were left out.

    The items of a list have the same fields; their paths contain ``[]``. Labels and annotations
    that were left out are not named, because users choose their names.
    """
    left_out: set[str] = set()
    return _keep(value, fields, "", left_out), frozenset(left_out)


def _keep(value: Any, fields: Fields, path: str, left_out: set[str]) -> Any:
    if not fields:
        return value
    if isinstance(value, list):
        return [_keep(item, fields, f"{path}[]", left_out) for item in value]
    if not isinstance(value, dict):
        # A list or mapping is expected, so nothing is known about what this is.
        return None
    chosen_by_users = any("/" in name for name in fields)
    left_out |= {
        path if chosen_by_users else _below(path, name) for name in value.keys() - fields.keys()
    }
    return {
        name: _keep(item, fields[name], _below(path, name), left_out)
        for name, item in value.items()
        if name in fields
    }


def _below(path: str, name: str) -> str:
    return f"{path}.{name}".removeprefix(".")
