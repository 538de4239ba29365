"""Documents that operators have next to the kubelet's configuration, and that contain none."""

from __future__ import annotations

import re
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
_TEXTS = tuple(
    (re.compile(pattern, re.MULTILINE), name, fix)
    for pattern, name, fix in (
        (
            r"^(?:resource|module|data|variable|provider|terraform|locals)\b[^:\n]*\{ *$",
            "a Terraform configuration",
            "render it, and use the text of the user data",
        ),
        (
            r"\A(?:#.*\n|\s)*\{[ \w,?.]*\.{3} *\} *:|^ *services\.kubernetes\.",
            "a NixOS module",
            "use the kubelet's command line: `systemctl cat kubelet`",
        ),
        (
            r"\AName: +\S+\n(?:Roles|Labels|Namespace):",
            "the output of `kubectl describe`",
            "save the output of `kubectl get ... -o yaml`",
        ),
    )
)
_AKS_ENGINE = (("properties", "orchestratorProfile"), ("properties", "agentPoolProfiles"))
_EXPORTED = ("topologyManagerPolicy", "topologyManagerScope")
_EXPORTER = "a resource-topology-exporter configuration, which repeats settings of the kubelet"
_EFFECTIVE = f"use the output of `{EFFECTIVE}`"


def refuse_text(text: str, file: str) -> None:
    """Refuses texts of products that don't contain a configuration in a form that can be read.

    Raises:
        DocumentError: the text is one.
    """
    for form, name, fix in _TEXTS:
        if found := form.search(text):
            raise DocumentError(file, text.count("\n", 0, found.start()) + 1, "", name, fix)


def refuse_list(document: Document) -> None:
    """Refuses lists that change a configuration which isn't in the file.

    Raises:
        DocumentError: the document is one.
    """
    first = value_at(document.data, (0,))
    if not isinstance(first, dict):
        return
    if {"op", "path"} <= first.keys():
        fix = "apply it first, or write it as a merge patch"
        raise document.error((), "a JSON patch, which changes another file", fix)
    if "hosts" in first or ("name" in first and any("." in name for name in first)):
        fix = "use the file that they write on the node"
        raise document.error((), "Ansible tasks", fix)


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
    if kind is None and any(value_at(content, path) for path in _AKS_ENGINE):
        fix = "write the flags of its kubeletConfig in a file, one per line"
        return no_configuration(document, (), "an API model of aks-engine", fix)
    if kind is None and any(value_at(content, ("kubelet", name)) for name in _EXPORTED):
        return no_configuration(document, ("kubelet",), _EXPORTER, _EFFECTIVE)
    return None
