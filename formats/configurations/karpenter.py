"""Karpenter's node classes, and its earlier NodePools and Provisioners.

(Karpenter documentation, "NodeClasses" and "NodePools".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    mapping_below,
    nothing,
    with_place,
)
from numaproof.inputs.documents import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import Document, PathTuple

_PATHS: tuple[PathTuple, ...] = (
    ("spec", "kubelet"),
    ("spec", "template", "spec", "kubelet"),
    ("spec", "kubeletConfiguration"),
    ("spec", "kubeletConfig"),
)
"""EC2NodeClass and AKSNodeClass; NodePool until v1beta1; Provisioner and GCENodeClass."""


_USER_DATA = ("spec", "userData")


def _read(document: Document, _: str) -> Iterator[Configuration]:
    kind = document.data.get("kind")
    path = next((one for one in _PATHS if value_at(document.data, one) is not None), None)
    if path is None:
        raise nothing(document, f"a Karpenter {kind}", *_PATHS[:2])
    found = Configuration(
        f"a Karpenter {kind}",
        ".".join(map(str, path)),
        mapping_below(document, path),
        name=str(value_at(document.data, ("metadata", "name")) or ""),
        adds_defaults="Karpenter",
    )
    if value_at(document.data, _USER_DATA):
        text = "left out spec.userData: if it configures the kubelet, save it as a file"
        found = found._replace(notes=(with_place(document, _USER_DATA, text),))
    yield found


FORMATS = tuple(
    Format(f"a Karpenter {kind}", _read, (), group, (kind,))
    for group, kind in (
        ("karpenter.k8s.aws", "EC2NodeClass"),
        ("karpenter.azure.com", "AKSNodeClass"),
        ("karpenter.k8s.gcp", "GCENodeClass"),
        ("karpenter.sh", "NodePool"),
        ("karpenter.sh", "Provisioner"),
    )
)
