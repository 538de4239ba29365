"""The pods on a node, from a listing: which containers run, and what creates the pods again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs.documents import value_at
from numaproof.simulation.pods import DescribedPod
from numaproof.simulation.pods_on_node import node_names, pods_on_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.simulation.pods import Reading

_SOURCE = "kubernetes.io/config.source"
_API = "api"
_STATUSES = ("initContainerStatuses", "containerStatuses")


class RunningPod(msgspec.Struct, frozen=True):
    """A pod on the node.

    Attributes:
        pod: the pod; its uid is the one by which the kubelet knows it.
        running: the names of its containers that have not ended.
        controller: ``KIND/NAME`` of the object that controls it; empty if there is none.
        is_static: whether the kubelet runs it from a file or a URL.
    """

    pod: DescribedPod
    running: tuple[str, ...]
    controller: str = ""
    is_static: bool = False

    @property
    def uid(self) -> str:
        """The uid by which the kubelet knows the pod."""
        return str(self.pod.manifest["metadata"]["uid"])


class SeveralNodesError(ValueError):
    """The pods of a listing run on several nodes; the message names them."""


def running_pods(reading: Reading) -> tuple[tuple[RunningPod, ...], tuple[str, ...]]:
    """Returns the pods of a listing that hold resources on the node, oldest first, and notes.

    Raises:
        SeveralNodesError: the pods run on several nodes.
    """
    nodes = node_names(reading.objects)
    if len(nodes) > 1:
        raise SeveralNodesError(
            f"the pods are on {len(nodes)} nodes, such as {nodes[0]} and {nodes[1]}; list those of"
            " one node: kubectl get pods -A --field-selector spec.nodeName=NODE -o yaml"
        )
    found = pods_on_node(reading.objects)
    pods = tuple(_running(reading.pods[at], reading.objects[at]) for at in found.held)
    return pods, tuple(found.lines())


def _running(pod: DescribedPod, listed: Mapping[str, Any]) -> RunningPod:
    source = (value_at(listed, ("metadata", "annotations")) or {}).get(_SOURCE, _API)
    return RunningPod(pod, tuple(_containers(pod, listed)), _controller(listed), source != _API)


def _controller(listed: Mapping[str, Any]) -> str:
    owners = value_at(listed, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller", True):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return ""


def _containers(pod: DescribedPod, listed: Mapping[str, Any]) -> Iterator[str]:
    """Yields the containers that have not ended.

    Without a status of its own, an init container of a running pod has ended.
    """
    states = {
        one["name"]: one.get("state")
        for field in _STATUSES
        for one in _list(value_at(listed, ("status", field)))
        if isinstance(one, dict) and isinstance(one.get("name"), str)
    }
    runs = value_at(listed, ("status", "phase")) == "Running"
    spec = pod.manifest["spec"]
    for one in spec.get("initContainers") or ():
        state = states.get(one["name"])
        has_ended = runs if state is None else "terminated" in state
        if not has_ended or one.get("restartPolicy") == "Always":
            yield one["name"]
    for one in spec["containers"]:
        if "terminated" not in (states.get(one["name"]) or ()):
            yield one["name"]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
