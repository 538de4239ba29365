"""Node configurations of managed services that rename some of the kubelet's fields.

(GKE documentation, "Customizing node system configuration"; AKS documentation, "Customize node
configuration for Azure Kubernetes Service node pools".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    nothing,
    rename,
    scalar,
)
from numaproof.inputs.documents import Document, MergedDocument, parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_GKE = "a GKE node system configuration"
_GKE_FIELDS = ("kubeletConfig",)
_RENAMED = {
    "cpuCfsQuota": "cpuCFSQuota",
    "cpuCfsQuotaPeriod": "cpuCFSQuotaPeriod",
    "imageGcHighThreshold": "imageGCHighThresholdPercent",
    "imageGcHighThresholdPercent": "imageGCHighThresholdPercent",
    "imageGcLowThreshold": "imageGCLowThresholdPercent",
    "imageGcLowThresholdPercent": "imageGCLowThresholdPercent",
    "imageMaximumGcAge": "imageMaximumGCAge",
    "imageMinimumGcAge": "imageMinimumGCAge",
    "podMaxPids": "podPidsLimit",
}
_MANAGERS: Mapping[str, Mapping[str, str]] = {
    "memoryManager": {"policy": "memoryManagerPolicy"},
    "topologyManager": {"policy": "topologyManagerPolicy", "scope": "topologyManagerScope"},
}
"""GKE groups the settings of two managers."""


def _read_gke(document: Document, _: str) -> Iterator[Configuration]:
    if not isinstance(document.data.get("kubeletConfig"), dict):
        raise nothing(document, _GKE, _GKE_FIELDS)
    found = parts(rename(document.below(_GKE_FIELDS), _RENAMED))
    for manager, names in _MANAGERS.items():
        group = found.get(manager)
        if group is not None and isinstance(group.data, dict):
            del found[manager]
            found |= parts(rename(group, names))
    if "podPidsLimit" in found and isinstance(found["podPidsLimit"].data, str):
        limit = found["podPidsLimit"]
        found["podPidsLimit"] = scalar(
            limit, int(limit.data) if limit.data.isdecimal() else limit.data
        )
    left = [name for name in document.data if name != "kubeletConfig"]
    port = found.pop("insecureKubeletReadonlyPortEnabled", None)
    result = Configuration(
        _GKE, "kubeletConfig", MergedDocument(document, found), adds_defaults="GKE"
    )
    if port is not None:
        left.append("insecureKubeletReadonlyPortEnabled")
    if left:
        result = result.note((), f"left out {', '.join(left)}: not about the resource managers")
    yield result


_AKS = "an AKS kubelet configuration"


def _read_aks(document: Document, _: str) -> Iterator[Configuration]:
    found = parts(rename(document, _RENAMED))
    size = found.pop("containerLogMaxSizeMB", None)
    if size is not None:
        found["containerLogMaxSize"] = scalar(size, f"{size.data}Mi")
    yield Configuration(_AKS, "", MergedDocument(document, found), adds_defaults="AKS")


FORMATS = (
    Format(_GKE, _read_gke, (_GKE_FIELDS, ("linuxConfig",))),
    Format(
        _AKS,
        _read_aks,
        tuple(
            (name,)
            for name in (
                "cpuCfsQuota",
                "cpuCfsQuotaPeriod",
                "imageGcHighThreshold",
                "imageGcLowThreshold",
                "containerLogMaxSizeMB",
                "podMaxPids",
            )
        ),
    ),
)
