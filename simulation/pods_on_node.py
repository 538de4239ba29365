"""Decides which pods in a cluster's listing hold resources on a node.

A kubelet takes back the resources of pods in phase ``Succeeded`` or ``Failed``. A pod that is being
deleted keeps them until its containers end (``isPodInactive`` in the kubelet).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numaproof.inputs.documents import value_at
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Manifest = Mapping[str, Any]
"""A Pod, as in the output of ``kubectl get pods -o json``."""

Reason = Literal["ended", "on another node", "not scheduled"]

_VERBS: Mapping[Reason, tuple[str, str]] = {
    "ended": ("has ended", "have ended"),
    "on another node": ("is on another node", "are on another node"),
    "not scheduled": ("is not scheduled", "are not scheduled"),
}
"""The singular and plural for each reason."""

_ENDED = ("Succeeded", "Failed")
_REJECTION = "Pod was rejected: "
_REJECTION_REASONS = ("TopologyAffinityError", "SMTAlignmentError", "UnexpectedAdmissionError")
_INSUFFICIENT = "OutOf"
_HASH = "kubernetes.io/config.hash"
_MAX_NAMES = 3


class LeftOutPod(NamedTuple):
    """A pod that holds nothing on the node.

    Attributes:
        position: its index among the pods.
        name: ``NAMESPACE/NAME``.
        reason: why it is left out.
        detail: its phase and the reason for it, or its node; can be empty.
    """

    position: int
    name: str
    reason: Reason
    detail: str = ""


class PodsOnNode(NamedTuple):
    """The pods that hold resources on a node, and the others.

    Attributes:
        on_node: the positions of the pods that hold resources, in order.
        left_out: the other pods, in order.
        terminating: the names of the pods in `on_node` that are being deleted.
        rejections: the names and reasons of the pods in `on_node` that a kubelet rejected.
    """

    on_node: tuple[int, ...]
    left_out: tuple[LeftOutPod, ...]
    terminating: tuple[str, ...]
    rejections: tuple[tuple[str, str], ...] = ()

    def lines(self) -> Iterator[str]:
        """Yields a line for each reason, and others for pods that are deleted or arrive again."""

        def order(pod: LeftOutPod) -> tuple[Reason, str]:
            return pod.reason, pod.detail

        for (reason, detail), group in groupby(sorted(self.left_out, key=order), order):
            pods = [pod.name for pod in group]
            verb = _VERBS[reason][len(pods) > 1] + (f" ({detail})" if detail else "")
            yield f"left out: {plural(len(pods), 'pod')} {verb}: {some_names(pods)}"
        if self.terminating:
            count, names = plural(len(self.terminating), "pod"), some_names(self.terminating)
            yield f"counted until the containers end: {count} with deletionTimestamp: {names}"

        def reason_of(pod: tuple[str, str]) -> str:
            return pod[1]

        for rejection, same in groupby(sorted(self.rejections, key=reason_of), reason_of):
            pods = [name for name, _ in same]
            verb = "was rejected" if len(pods) == 1 else "were rejected"
            count = plural(len(pods), "pod")
            yield f"arrives again: {count} {verb} ({rejection}): {some_names(pods)}"


def pods_on_node(
    pods: Iterable[Manifest], node_name: str = "", *, arriving: bool = False
) -> PodsOnNode:
    """Separates the pods that hold resources on a node from the others.

    A pod that a kubelet rejected has ended. It arrives again if the pods are to be admitted and
    none of them is on a node, because then they are not a node's listing.

    Args:
        pods: the pods. Manifests, which have neither a node nor a status, count as held.
        node_name: the node. If it is empty, pods of all nodes are held; pods that are not scheduled
            are held only if no pod is on a node.
        arriving: whether the pods are to be admitted.
    """
    pods = list(pods)
    are_on_nodes = bool(node_names(pods))
    has_node = bool(node_name or are_on_nodes)
    on_node, terminating, rejections = [], [], []
    left_out = []
    for position, pod in enumerate(pods):
        returns = arriving and not are_on_nodes and _is_rejected(pod)
        why = _why_left_out(pod, node_name, has_node=has_node, returns=returns)
        if why:
            left_out.append(LeftOutPod(position, name_of(pod), *why))
            continue
        on_node.append(position)
        if value_at(pod, ("metadata", "deletionTimestamp")):
            terminating.append(name_of(pod))
        if returns:
            rejections.append((name_of(pod), _reason(pod)))
    return PodsOnNode(tuple(on_node), tuple(left_out), tuple(terminating), tuple(rejections))


def _why_left_out(
    pod: Manifest, node_name: str, *, has_node: bool, returns: bool
) -> tuple[Reason, str] | None:
    phase, node = _phase(pod), _node(pod)
    if phase in _ENDED and not returns:
        return "ended", ": ".join(filter(None, (phase, _reason(pod))))
    if node_name and node and node != node_name:
        return "on another node", node
    if has_node and phase and not node:
        return "not scheduled", phase
    return None


def _is_rejected(pod: Manifest) -> bool:
    """Whether a kubelet rejected a pod at its admission (`rejectPod` in the kubelet)."""
    if _phase(pod) != "Failed":
        return False
    reason, message = _reason(pod), _text(pod, ("status", "message"))
    return (
        message.startswith(_REJECTION)
        or reason in _REJECTION_REASONS
        or reason.startswith(_INSUFFICIENT)
    )


def node_names(pods: Iterable[Manifest]) -> tuple[str, ...]:
    """Returns the names of the nodes with pods that have not ended, sorted."""
    return tuple(sorted({_node(pod) for pod in pods if _phase(pod) not in _ENDED} - {""}))


def uid_on_node(pod: Manifest) -> str:
    """Returns the uid by which the node's kubelet knows a pod; empty if the pod has none.

    The API server's copy of a static pod has a uid of its own; the kubelet's is in an annotation.
    """
    annotations = value_at(pod, ("metadata", "annotations"))
    own = annotations.get(_HASH) if isinstance(annotations, dict) else None
    return str(own or _text(pod, ("metadata", "uid")))


def _phase(pod: Manifest) -> str:
    return _text(pod, ("status", "phase"))


def _reason(pod: Manifest) -> str:
    return _text(pod, ("status", "reason"))


def _node(pod: Manifest) -> str:
    return _text(pod, ("spec", "nodeName"))


def name_of(pod: Manifest) -> str:
    """Returns ``NAMESPACE/NAME``."""
    namespace = _text(pod, ("metadata", "namespace")) or "default"
    return f"{namespace}/{_text(pod, ('metadata', 'name'))}"


def _text(pod: Manifest, path: tuple[str, ...]) -> str:
    value = value_at(pod, path)
    return value if isinstance(value, str) else ""


def some_names(pods: Sequence[str]) -> str:
    """Lists the first few names."""
    more = len(pods) - _MAX_NAMES
    shown = ", ".join(pods[:_MAX_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def controller_of(listing: Mapping[str, Any]) -> str:
    """Returns ``KIND/NAME`` of the object that controls a pod; empty if there is none."""
    owners = value_at(listing, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller", True):
            return f"{owner.get('kind')}/{owner.get('name')}"
    return ""
