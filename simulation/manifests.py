"""Makes pods' manifests as the API server stores them, and validates them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.inputs.names import suggestion
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.reference.pods.pod_level import is_supported, requested_together
from numaproof.simulation import fields
from numaproof.simulation.documents import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from numaproof.inputs.documents import Document, DocumentError, PathTuple
    from numaproof.protocol.messages import Pod
    from numaproof.reference.pods.pod import Pod as ReadPod


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
        pod = read_pod(manifest, "budget")
    except UnsupportedError as error:
        raise _locate_error(document, path, f"{error} is not supported") from None
    except PodError as error:
        raise _locate_error(document, path, str(error)) from None
    check_restart_policy(document, spec, path)
    check_containers(document, containers)
    _check_claims(document, spec, containers)
    _check_whole_pod(document, spec, pod, path)
    return manifest


def fractions(manifest: Pod) -> Iterator[str]:
    """Yields amounts of bytes that are fractions, which the API server accepts with a warning."""
    spec = manifest["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        amounts = {**container["resources"]["requests"], **container["resources"]["limits"]}
        for resource, text in amounts.items():
            if resource in _BYTES and quantity.parse(text).denominator != 1:
                meant = f"; is it {likely}?" if (likely := likely_amount(text)) else ""
                name = container["name"]
                yield f"container {name}: {resource} {text} is a fraction of a byte{meant}"


def likely_amount(text: Any) -> str:
    """Returns the amount that was probably meant by a fraction of a byte; can be empty."""
    if re.fullmatch(r"[0-9]{1,6}m", str(text)):
        return f"{str(text)[:-1]}Mi"
    return f"{text}Gi" if re.fullmatch(r"[0-9]{1,4}[.][0-9]+", str(text)) else ""


_BYTES = ("memory", "ephemeral-storage")


def _check_claims(
    document: Document,
    spec: dict[str, Any],
    containers: Sequence[tuple[PathTuple, dict[str, Any]]],
) -> None:
    """Checks that containers use resource claims that the pod has."""
    listed = spec.get("resourceClaims")
    names = {one.get("name") for one in _mappings(listed)}
    for path, container in containers:
        for number, claim in enumerate(_mappings(container["resources"].get("claims"))):
            if claim.get("name") not in names:
                place = (*path, "resources", "claims", number)
                fix = "add it to the pod's resourceClaims"
                raise document.error(place, f"no claim {claim.get('name')!r}", fix)


def _mappings(value: object) -> list[dict[str, Any]]:
    return (
        [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []
    )


def _check_whole_pod(
    document: Document, spec: dict[str, Any], pod: ReadPod, path: PathTuple
) -> None:
    """Compares pod-level resources with those of the containers."""
    own = spec.get("resources")
    if not own:
        return
    place = (*path, "resources")
    for kind in ("limits", "requests"):
        for resource in own.get(kind) or {}:
            if not is_supported(resource):
                fix = "use cpu, memory or huge pages"
                raise document.error((*place, kind, resource), "not a resource of whole pods", fix)
    for number, one in enumerate(spec["containers"]):
        for resource, text in one["resources"]["limits"].items():
            most = pod.limits.get(resource)
            if most is not None and quantity.parse(text) > quantity.parse(most):
                where = (*path, "containers", number, "resources", "limits", resource)
                message = f"limit of {text} exceeds the pod's limit of {most}"
                raise document.error(where, message, "raise the pod's limit")
    _check_requests_of_pod(document, pod, place)


def _check_requests_of_pod(document: Document, pod: ReadPod, place: PathTuple) -> None:
    """Compares a pod's requests with its limits and with the requests of its containers."""
    together = requested_together(pod.containers)
    for resource, text in pod.requests.items():
        asked, limit = quantity.parse(text), pod.limits.get(resource)
        needed = together.get(resource, 0)
        if quantity.parse(needed) > asked:
            message = f"request of {text} is less than the containers' requests of {needed}"
            raise document.error((*place, "requests", resource), message, "raise the request")
        if limit is not None and asked > quantity.parse(limit):
            message = f"limit of {limit} is less than the pod's requests of {text}"
            raise document.error((*place, "limits", resource), message, "raise the limit")


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
        _check_pages(document, container["resources"]["requests"], (*path, "resources"))


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
    return resource in _STANDARD or _is_pages(resource) or "/" in resource


_PAGES = "hugepages-"


def _check_pages(document: Document, requests: dict[str, Any], path: PathTuple) -> None:
    """Validates a container's huge pages, whose requests equal their limits."""
    pages = [name for name in requests if _is_pages(name)]
    for name in pages:
        if not _is_whole_pages(name, quantity.parse(requests[name])):
            message = f"{requests[name]} is not a multiple of the page size"
            fix = "use a multiple of a size such as 2Mi or 1Gi"
            raise document.error((*path, "limits", name), message, fix)
    if pages and requests.keys().isdisjoint(("cpu", "memory")):
        message = "huge pages require a request for cpu or memory"
        raise document.error(path, message, "request cpu or memory as well")


def _is_pages(resource: str) -> bool:
    return resource.startswith(_PAGES)


def _is_whole_pages(resource: str, amount: Fraction) -> bool:
    try:
        size = quantity.parse(resource.removeprefix(_PAGES))
    except quantity.QuantityError:
        return False
    return size > 0 and (amount / size).denominator == 1


def _overcommits(resource: str) -> bool:
    """Whether the limit may exceed the request; false for huge pages and extended resources."""
    if _is_pages(resource):
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
