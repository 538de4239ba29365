"""Pods whose resize in place is pending: a kubelet counts them with what it allocated.

At its start, a kubelet replaces the resources of a pod's specification with the ones that it
allocated (`UpdatePodFromAllocation` in the kubelet), which ``status.containerStatuses`` shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.inputs.documents import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def with_allocated_resources(spec: dict[str, Any], status: object) -> dict[str, Any]:
    """Returns a pod's specification with its allocated resources; the same if they are equal.

    The status has allocated requests only. A limit that equals its request changes with it, because
    a resize can't change the pod's QoS class.

    Args:
        spec: the specification.
        status: the pod's status; malformed parts count as absent.
    """
    found = spec
    for field, statuses in _LISTS:
        amounts = {
            one["name"]: one["allocatedResources"]
            for one in _mappings(value_at(status, (statuses,)))
            if isinstance(one.get("name"), str) and isinstance(one.get("allocatedResources"), dict)
        }
        containers = spec.get(field)
        if amounts and isinstance(containers, list):
            containers_now = [_with_amounts(one, amounts) for one in containers]
            if containers_now != containers:
                found = {**found, field: containers_now}
    return found


def _with_amounts(container: Any, amounts: Mapping[str, Mapping[str, Any]]) -> Any:
    """Returns a container with its allocated resources."""
    if not isinstance(container, dict):
        return container
    given = amounts.get(str(container.get("name")), {})
    resources = container.get("resources")
    limits, requests = (value_at(resources, (kind,)) or {} for kind in ("limits", "requests"))
    if not (isinstance(limits, dict) and isinstance(requests, dict)):
        return container
    asked = {**limits, **requests}
    changed = {
        name: amount
        for name, amount in given.items()
        if name in asked and str(amount) != str(asked[name])
    }
    if not changed:
        return container
    together = {name: one for name, one in changed.items() if limits.get(name) == asked[name]}
    return {
        **container,
        "resources": {
            **(resources or {}),
            "requests": {**requests, **changed},
            "limits": {**limits, **together},
        },
    }


def _mappings(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
