"""What the API server does to a pod's containers before a kubelet sees them.

It defaults requests to limits and rejects pods that no kubelet ever gets. (Kubernetes
documentation, "Resource Management for Pods and Containers", "Manage HugePages", "Extended
resources".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.pods import quantity
from numaproof.simulation.documents import mapping
from numaproof.simulation.fields import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.inputs.documents import Document, PathTuple


def container(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """The container at `path` as the API server stores it: requests default to the limits.

    Raises:
        DocumentError: its resources are malformed.
    """
    fields = mapping(document, value, path)
    place = (*path, "resources")
    resources = mapping(document, fields.get("resources") or {}, place)
    limits, requests = (_amounts(document, resources, one, place) for one in ("limits", "requests"))
    amounts = {"limits": limits, "requests": {**limits, **requests}}
    return {**fields, "resources": {**resources, **amounts}}


def _amounts(
    document: Document, resources: dict[str, Any], kind: str, place: PathTuple
) -> dict[str, Any]:
    given = mapping(document, resources.get(kind) or {}, (*place, kind))
    # Null is an amount of zero.
    return {resource: 0 if amount is None else amount for resource, amount in given.items()}


def check(document: Document, containers: Sequence[tuple[PathTuple, dict[str, Any]]]) -> None:
    """Validates the containers of a pod, each at its path; all amounts must be quantities.

    Raises:
        DocumentError: the API server would reject the pod.
    """
    names: set[str] = set()
    for path, fields in containers:
        if fields["name"] in names:
            message = f"duplicate container name {fields['name']!r}"
            raise document.error((*path, "name"), message, "rename one of the containers")
        names.add(fields["name"])
        check_restart_policy(document, fields, path)
        _check_amounts(document, fields["resources"], (*path, "resources"))


def check_restart_policy(document: Document, fields: dict[str, Any], path: PathTuple) -> None:
    """Validates when a pod or a container is to be restarted.

    Raises:
        DocumentError: the API server would reject the value.
    """
    given = fields.get("restartPolicy")
    if given not in (None, "", *_RESTART_POLICIES):
        fix = suggestion(str(given), _RESTART_POLICIES)
        raise document.error((*path, "restartPolicy"), f"unknown value {given!r}", fix)


_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def _check_amounts(document: Document, resources: dict[str, Any], path: PathTuple) -> None:
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for resource in resources[kind]:
            if not _is_qualified(resource):
                fix = suggestion(resource, _STANDARD)
                raise document.error((*path, kind, resource), "not a resource of containers", fix)
    for resource, text in resources["requests"].items():
        asked, limit = quantity.parse(text), limits.get(resource)
        place = (*path, "requests" if limit is None or limit != text else "limits", resource)
        if asked < 0:
            raise document.error(place, f"{text} is negative", "set it to 0 or more")
        if limit is not None and asked > quantity.parse(limit):
            message = f"request of {text} exceeds the limit of {limit}"
            raise document.error(place, message, "request no more than the limit")
        if not _overcommits(resource):
            if limit is None or asked != quantity.parse(limit):
                message = (
                    f"request of {text} has no limit"
                    if limit is None
                    else f"request of {text} differs from the limit of {limit}"
                )
                raise document.error(place, message, f"set the limit of {resource} to the request")
            if asked.denominator != 1:
                raise document.error(place, f"{text} is not a whole number", "use a whole number")


_STANDARD = ("cpu", "memory", "ephemeral-storage")


def _is_qualified(resource: str) -> bool:
    """Whether it is a resource of Kubernetes, or one with a domain."""
    return resource in _STANDARD or resource.startswith("hugepages-") or "/" in resource


def _overcommits(resource: str) -> bool:
    """Whether a limit may exceed the request; false for huge pages and extended resources."""
    if resource.startswith("hugepages-"):
        return False
    domain, slash, _ = resource.partition("/")
    return not slash or domain.endswith("kubernetes.io")
