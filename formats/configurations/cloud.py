"""Node configurations of managed services that rename some of the kubelet's fields.

(GKE documentation, "Customizing node system configuration"; AKS documentation, "Customize node
configuration for Azure Kubernetes Service node pools".)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    mapping_below,
    nothing,
    of_managers,
    rename,
    scalar,
)
from numaproof.inputs.documents import Document, MergedDocument, parts
from numaproof.inputs.streams import split_documents

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
    known = of_managers(found)
    result = Configuration(
        _GKE, "kubeletConfig", MergedDocument(document, known), adds_defaults="GKE"
    )
    left = [*(document.data.keys() - {"kubeletConfig"}), *(found.keys() - known.keys())]
    yield result.note((), f"left out {', '.join(sorted(left))}") if left else result


_AKS = "an AKS kubelet configuration"


def _read_aks(document: Document, _: str) -> Iterator[Configuration]:
    found = parts(rename(document, _RENAMED))
    size = found.pop("containerLogMaxSizeMB", None)
    if size is not None:
        found["containerLogMaxSize"] = scalar(size, f"{size.data}Mi")
    yield Configuration(_AKS, "", MergedDocument(document, found), adds_defaults="AKS")


_FOR_AKS = re.compile(r"\baz\s+aks\b|kubeletconfig\.json\b")
"""The command that takes AKS's format, and the file's name in AKS's documentation."""


def is_for_aks(script: str, text: str) -> bool:
    """Whether a text that a script writes has AKS's format, which needs no apiVersion."""
    return text.lstrip().startswith("{") and _FOR_AKS.search(script) is not None


def read_aks(text: str, file: str) -> Iterator[Configuration]:
    """Yields the configurations in a text for AKS.

    Raises:
        DocumentError: the text is not JSON, or not a mapping.
    """
    for document in split_documents(text.replace("\t", " "), file):
        yield from _read_aks(mapping_below(document, ()), text)


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
