"""What pods ask for that the simulation does not evaluate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs.documents import value_at
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_FIELDS: Mapping[str, str] = {
    "resourceClaims": "resource claims (DRA): the devices, CPUs and memory that drivers allocate",
    "nodeSelector": "nodeSelector: whether the node has the labels",
    "affinity": "affinity: whether node and pod affinity allow this node",
    "topologySpreadConstraints": "topologySpreadConstraints: whether they allow this node",
    "tolerations": "tolerations: whether the node has taints that the pod does not tolerate",
    "schedulingGates": "schedulingGates: the pod is not scheduled until they are removed",
    "schedulingGroup": "schedulingGroup: whether the whole group can be scheduled",
}
"""The fields of a pod's specification that are not evaluated."""

_RUNTIME_CLASS = "runtimeClassName: the overhead and node selector of the RuntimeClass"
_STORAGE = "ephemeral-storage: whether the node has enough"
_PORTS = "hostPort: whether the ports are free"
_VOLUMES = "persistent volumes: whether this node can attach them"
NETWORKS = "additional networks: the devices of an SR-IOV network, unless the pod requests them"
"""The gap of a pod with networks of Multus."""
_NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
RESIZE = "resize in place: the pod counts with the resources of its specification"
"""The gap of a pod that is being resized."""
_LIMIT = 3
_AUTOMATIC_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class EvaluationGap(msgspec.Struct, frozen=True):
    """Something that is not evaluated.

    Attributes:
        what: the field, and what it could change.
        pods: the number of pods that have it.
        examples: the names of some of them.
    """

    what: str
    pods: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        """Returns a line for the user."""
        others = self.pods - len(self.examples)
        more = f" and {others} more" if others else ""
        return f"{self.what} ({plural(self.pods, 'pod')}: {', '.join(self.examples)}{more})"


def summarize(pods: Iterable[tuple[str, Sequence[str]]]) -> tuple[EvaluationGap, ...]:
    """Groups what is not evaluated in some pods, given by their names and gaps."""
    names: dict[str, list[str]] = {}
    for name, gaps in pods:
        for gap in gaps:
            names.setdefault(gap, []).append(name)
    return tuple(
        EvaluationGap(what, len(having), tuple(having[:_LIMIT])) for what, having in names.items()
    )


def of_pod(
    spec: Mapping[str, Any], status: object = None, annotations: object = None
) -> tuple[str, ...]:
    """Returns what is not evaluated in a pod.

    `status` and `annotations` are the pod's, if it has any.
    """
    gaps = tuple(_gaps(spec, status if isinstance(status, dict) else {}))
    has_networks = isinstance(annotations, dict) and _NETWORKS_ANNOTATION in annotations
    return (*gaps, NETWORKS) if has_networks else gaps


def of_memory(spec: Mapping[str, Any], unknown_memory: str, node: str = "") -> tuple[str, ...]:
    """Returns the gap of a pod that requests memory on a machine whose memory is unknown.

    `unknown_memory` names the memory whose amount the machine's description does not show, and
    `node` the node if there are several.
    """
    parts = (spec, *(spec.get("initContainers") or ()), *spec["containers"])
    if not unknown_memory or not any("memory" in each for part in parts for each in _amounts(part)):
        return ()
    why = f"because the machine's description doesn't show {unknown_memory}"
    where, key = (f" on {node}", f"{node}:memory") if node else ("", "memory")
    return (f"memory: whether there is enough{where}, {why}: add --assume {key}=SIZE",)


def _gaps(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[str]:
    for name, what in _FIELDS.items():
        value = spec.get(name)
        if name == "tolerations":
            value = [one for one in value or () if not _is_automatic(one)]
        if value:
            yield what
    if spec.get("runtimeClassName") and not spec.get("overhead"):
        yield _RUNTIME_CLASS
    containers = [
        one for name in ("initContainers", "containers") for one in _mappings(spec.get(name))
    ]
    if any("ephemeral-storage" in amounts for one in containers for amounts in _amounts(one)):
        yield _STORAGE
    if any(port.get("hostPort") for one in containers for port in _mappings(one.get("ports"))):
        yield _PORTS
    volumes = _mappings(spec.get("volumes"))
    if any("persistentVolumeClaim" in one or "ephemeral" in one for one in volumes):
        yield _VOLUMES
    if _is_resizing(spec, status):
        yield RESIZE


def _is_automatic(toleration: object) -> bool:
    """Whether a toleration is one that the API server adds to every pod."""
    key = toleration.get("key") if isinstance(toleration, dict) else None
    return key in _AUTOMATIC_TOLERATIONS


def _is_resizing(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a container's resources differ from its specification, or a resize is under way."""
    conditions = {one.get("type") for one in _mappings(status.get("conditions"))}
    if status.get("resize") or conditions & {"PodResizePending", "PodResizeInProgress"}:
        return True
    asked = {
        one.get("name"): value_at(one, ("resources", "requests", "cpu"))
        for one in _mappings(spec.get("containers"))
    }
    return any(
        value_at(one, ("allocatedResources", "cpu")) not in (None, asked.get(one.get("name")))
        for one in _mappings(status.get("containerStatuses"))
    )


def _amounts(container: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("limits", "requests"):
        amounts = value_at(container, ("resources", kind))
        if isinstance(amounts, dict):
            yield amounts


def _mappings(value: object) -> list[dict[str, Any]]:
    """Returns the mappings in a list; none if the value is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
