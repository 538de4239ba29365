"""Makes pods' manifests as the API server stores them, and validates them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.inputs.names import suggestion
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.simulation import fields
from numaproof.simulation.documents import mapping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.inputs.documents import Document, DocumentError, PathTuple
    from numaproof.protocol.messages import Pod


def stored_manifest(
    document: Document, path: PathTuple, specification: dict[str, Any], metadata: dict[str, str]
) -> Pod:
    """Returns a pod as the API server stores it.

    Args:
        document: the document that describes the pod.
        path: the path of the specification in the document.
        specification: the specification as written.
        metadata: the pod's name, namespace and uid.

    Raises:
        DocumentError: the API server would reject the pod, or it is not supported.
    """
    spec = dict(specification)
    if not spec.get("containers"):
        raise document.error((*path, "containers"), "a pod needs at least one container")
    containers = []
    for key in ("initContainers", "containers"):
        if spec.get(key):
            if not isinstance(spec[key], list):
                raise document.error((*path, key), *fields.mismatch("[]"))
            spec[key] = [
                with_default_requests(document, one, (*path, key, number))
                for number, one in enumerate(spec[key])
            ]
            containers += [((*path, key, n), one) for n, one in enumerate(spec[key])]
    manifest: Pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    try:
        read_pod(manifest, "budget")
    except UnsupportedError as error:
        raise _locate_error(document, path, f"{error} is not supported") from None
    except PodError as error:
        raise _locate_error(document, path, str(error)) from None
    check_restart_policy(document, spec, path)
    check_containers(document, containers)
    return manifest


def with_default_requests(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """Returns the container as the API server stores it, with requests defaulting to limits.

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
    # Null means zero.
    return {resource: 0 if amount is None else amount for resource, amount in given.items()}


def check_containers(
    document: Document, containers: Sequence[tuple[PathTuple, dict[str, Any]]]
) -> None:
    """Validates the containers of a pod, given with their paths; all amounts must be quantities.

    Raises:
        DocumentError: the API server would reject the pod.
    """
    names: set[str] = set()
    for path, container in containers:
        if container["name"] in names:
            message = f"duplicate container name {container['name']!r}"
            raise document.error((*path, "name"), message, "rename one of the containers")
        names.add(container["name"])
        check_restart_policy(document, container, path)
        _check_amounts(document, container["resources"], (*path, "resources"))


def check_restart_policy(document: Document, fields: dict[str, Any], path: PathTuple) -> None:
    """Validates the restart policy of a pod or container.

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
                raise document.error((*path, kind, resource), "not a container resource", fix)
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
                raise document.error(place, message, f"set the limit of {resource} to its request")
            if asked.denominator != 1:
                raise document.error(place, f"{text} is not a whole number", "use a whole number")


_STANDARD = ("cpu", "memory", "ephemeral-storage")


def _is_qualified(resource: str) -> bool:
    """Whether the resource is a standard one, huge pages, or one with a domain."""
    return resource in _STANDARD or resource.startswith("hugepages-") or "/" in resource


def _overcommits(resource: str) -> bool:
    """Whether the limit may exceed the request; false for huge pages and extended resources."""
    if resource.startswith("hugepages-"):
        return False
    domain, slash, _ = resource.partition("/")
    return not slash or domain.endswith("kubernetes.io")


_FIELD = re.compile(r"(spec[^ :]*):? *(.*)", re.DOTALL)


def _locate_error(document: Document, place: PathTuple, text: str) -> DocumentError:
    """Locates an error whose text begins with the field, such as ``spec.containers[0].name``."""
    named, message = _FIELD.fullmatch(text).groups()  # type: ignore[union-attr] # it always fits
    outer, _, resource = re.sub(r"[.](limits|requests)[.]", r".\1 ", named).partition(" ")
    steps: list[str | int] = [
        int(index) if index else name for name, index in re.findall(r"[.](\w+)|\[(\d+)\]", outer)
    ]
    fix = "see the Kubernetes API reference"
    if resource:
        steps.append(resource)
        fix = "use a quantity such as 2, 500m or 1Gi"
    return document.error((*place, *steps), message, fix)
