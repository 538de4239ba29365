"""Manifests: the part of a v1.Pod that concerns the managers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import pod_level, quantity
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod import Pod, PodError
from numaproof.reference.pods.pod_level import PodRules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.reference.pods.pod_level import PodLevel


def read_pod(
    manifest: Mapping[str, Any], level: PodLevel = "ignored", rules: type[PodRules] = PodRules
) -> Pod:
    """Reads a v1.Pod manifest; `level` says how its pod-level resources are used.

    Raises:
        PodError: a field that the managers need is missing or has the wrong type.

    Requirements: CPU-INIT-001, CPU-NONE-003, CPU-STATIC-017, CPU-STATIC-024, NODE-PODLEVEL-001,
    NODE-PODLEVEL-002, NODE-PODLEVEL-004, NODE-PODLEVEL-009, NODE-PODLEVEL-019.
    """
    uid = _mapping(manifest.get("metadata"), "metadata").get("uid")
    if not isinstance(uid, str) or not uid:
        raise PodError("metadata.uid must be a non-empty string")
    spec = _mapping(manifest.get("spec"), "spec")
    containers = tuple(
        read_container(item, f"spec.{key}[{number}]", init=key == "initContainers")
        for key in ("initContainers", "containers")
        for number, item in enumerate(_list(spec.get(key) or [], f"spec.{key}"))
    )
    status = _mapping(manifest.get("status") or {}, "status")
    given = status.get("qosClass")
    overhead = _quantities(spec.get("overhead"), "spec.overhead")
    is_static = messages.is_static(manifest)
    priority = _priority(spec, is_static=is_static)
    own = spec.get("resources")
    if own is None or level == "ignored":
        qos = given or rules.qos_class(containers)
        return Pod(uid, containers, qos, overhead=overhead, priority=priority, is_static=is_static)
    resources = _mapping(own, "spec.resources")
    limits = _quantities(resources.get("limits"), "spec.resources.limits")
    requests = _quantities(resources.get("requests"), "spec.resources.requests")
    if level == "shared pool alone":
        as_one = PodContainer("", requests, limits)
        decide = False
    else:
        as_one = rules.as_one(requests, limits, containers)
        decide = rules.decide(as_one)
    asks = pod_level.has_supported_resources(as_one)
    return Pod(
        uid,
        containers,
        given or rules.qos_class((as_one,) if decide else containers),
        shared_pool=asks and level.startswith("shared pool"),
        budget=as_one.requests if asks and level == "budget" else None,
        limits=as_one.limits if asks else {},
        requests=as_one.requests if asks and level != "shared pool alone" else {},
        overhead=overhead,
        priority=priority,
        is_static=is_static,
    )


SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The priorities of the classes that every cluster has."""


def _priority(spec: Mapping[str, Any], *, is_static: bool) -> int | None:
    """Reads a pod's priority; the API server derives it from the class, but not for static pods.

    Requirements: NODE-ALLOC-009, NODE-ALLOC-017.
    """
    own, name = spec.get("priority"), spec.get("priorityClassName")
    if own is None and name is not None:
        if not isinstance(name, str):
            raise PodError("spec.priorityClassName must be a string")
        return None if is_static else SYSTEM_PRIORITIES.get(name)
    if own is not None and (not isinstance(own, int) or isinstance(own, bool)):
        raise PodError("spec.priority must be an integer")
    return own


def read_container(item: Any, where: str, *, init: bool) -> PodContainer:
    """Reads a container from an entry of the manifest at `where`.

    Raises:
        PodError: a field that the managers need is missing or has the wrong type.

    Requirements: CPU-EXAMPLE-006, CPU-INIT-001, CPU-INIT-004.
    """
    fields = _mapping(item, where)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise PodError(f"{where}.name must be a non-empty string")
    resources = _mapping(fields.get("resources") or {}, f"{where}.resources")
    limits = _quantities(resources.get("limits"), f"{where}.resources.limits")
    requests = _quantities(resources.get("requests"), f"{where}.resources.requests")
    return PodContainer(
        name=name,
        # The API server sets a missing request to the limit.
        requests={**limits, **requests},
        limits=limits,
        init=init,
        sidecar=init and fields.get("restartPolicy") == "Always",
    )


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PodError(f"{where} must be an object")
    return value


def _list(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise PodError(f"{where} must be a list")
    return value


_NO_QUANTITIES = {bool: "true or false", list: "a list", dict: "an object"}


def _quantities(value: Any, where: str) -> Mapping[str, Any]:
    # Null is also a quantity, namely zero.
    given = _mapping(value or {}, where).items()
    found = {resource: 0 if text is None else text for resource, text in given}
    for resource, text in found.items():
        if kind := _NO_QUANTITIES.get(type(text)):
            raise PodError(
                f'{where}.{resource} is {kind}; it must be a quantity such as "2", "500m" or "1Gi"'
            )
        try:
            quantity.parse(text)
        except quantity.QuantityError as error:
            raise PodError(f"{where}.{resource}: {error}") from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{where}.{resource}: {error}") from None
    return found
