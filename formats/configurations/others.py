"""Documents that operators have next to the kubelet's configuration, and that contain none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations.configuration import EFFECTIVE, no_configuration
from numaproof.inputs.documents import Document, DocumentError, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping


_PODS = ("manifests of pods", "name the file where the command expects pods")
_KINDS = {
    "CronJob": _PODS,
    "DaemonSet": _PODS,
    "Deployment": _PODS,
    "Job": _PODS,
    "Pod": _PODS,
    "ReplicaSet": _PODS,
    "StatefulSet": _PODS,
    "Node": ("a Node, which has no kubelet configuration", ""),
    "NodeResourceTopology": ("a NodeResourceTopology, which describes a machine", ""),
    "MachineConfigPool": ("a MachineConfigPool", "use its KubeletConfig or MachineConfig"),
    "Tuned": ("a Tuned profile, which configures the kernel", ""),
}
_GROUPS = {
    "sriovnetwork.openshift.io": "an object of the SR-IOV Network Operator, which configures NICs",
    "nodetopology.openshift.io": "an object of the NUMA Resources Operator",
    "nfd.k8s-sigs.io": "an object of Node Feature Discovery",
    "nfd.openshift.io": "an object of the Node Feature Discovery Operator",
    "k3d.io": "a k3d cluster",
}
_EXPORTED = ("topologyManagerPolicy", "topologyManagerScope")
_EXPORTER = "a resource-topology-exporter configuration, which repeats settings of the kubelet"
_EFFECTIVE = f"use the output of `{EFFECTIVE}`"


def refusal(document: Document) -> DocumentError | None:
    """Returns the error for a document of a product that does not configure the kubelet."""
    content: Mapping[str, Any] = document.data
    kind, version = content.get("kind"), str(content.get("apiVersion"))
    group = version.partition("/")[0]
    if group in _GROUPS:
        return no_configuration(document, ("apiVersion",), f"{_GROUPS[group]} ({kind})", _EFFECTIVE)
    if isinstance(kind, str) and kind in _KINDS:
        what, fix = _KINDS[kind]
        return no_configuration(document, ("kind",), what, fix or _EFFECTIVE)
    if kind is None and any(value_at(content, ("kubelet", name)) for name in _EXPORTED):
        return no_configuration(document, ("kubelet",), _EXPORTER, _EFFECTIVE)
    return None
