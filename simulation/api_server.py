"""What the API server makes of a pod's containers before any kubelet sees them.

It fills in requests, and it refuses what no kubelet is ever asked for. (Kubernetes documentation,
"Resource Management for Pods and Containers", "Manage HugePages", "Extended resources".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.pods import quantity
from numaproof.simulation.documents import mapping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.fakesys.documents import Document, PathTuple


def container(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """The container at `path` as the API server stores it: requests left out are the limits.

    Raises:
        DocumentError: its resources are of a wrong form.
    """
    fields = mapping(document, value, path)
    place = (*path, "resources")
    resources = mapping(document, fields.get("resources") or {}, place)
    limits = mapping(document, resources.get("limits") or {}, (*place, "limits"))
    requests = mapping(document, resources.get("requests") or {}, (*place, "requests"))
    return {**fields, "resources": {**resources, "requests": {**limits, **requests}}}


def check(document: Document, containers: Sequence[tuple[PathTuple, dict[str, Any]]]) -> None:
    """Checks the containers of a pod, each at its path; their amounts must be quantities.

    Raises:
        DocumentError: the API server refuses the pod.
    """
    names: set[str] = set()
    for path, fields in containers:
        if fields["name"] in names:
            message = f"a second container {fields['name']!r}"
            raise document.error((*path, "name"), message, "give it another name")
        names.add(fields["name"])
        _check_amounts(document, fields["resources"], (*path, "resources"))


def _check_amounts(document: Document, resources: dict[str, Any], path: PathTuple) -> None:
    limits = resources.get("limits") or {}
    for resource, text in resources["requests"].items():
        asked, limit = quantity.parse(text), limits.get(resource)
        place = (*path, "requests" if limit is None or limit != text else "limits", resource)
        if asked < 0:
            raise document.error(place, f"{text} is less than 0", "write an amount")
        if limit is not None and asked > quantity.parse(limit):
            message = f"{text} is more than its limit of {limit}"
            raise document.error(place, message, "ask for as much as the limit at most")
        if not _overcommits(resource):
            if limit is None or asked != quantity.parse(limit):
                message = f"{text} is not the limit, which is {limit or 'missing'}"
                raise document.error(place, message, f"limit {resource} to as much")
            if asked.denominator != 1:
                raise document.error(place, f"{text} is no whole number", "write a whole number")


def _overcommits(resource: str) -> bool:
    """Whether a limit may be above the request; not for huge pages and extended resources."""
    if resource.startswith("hugepages-"):
        return False
    domain, slash, _ = resource.partition("/")
    return not slash or domain.endswith("kubernetes.io")
