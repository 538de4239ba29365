"""Karpenter's node classes, and its earlier NodePools and Provisioners.

(Karpenter documentation, "NodeClasses" and "NodePools".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    mapping_below,
    name_of,
    nothing,
    stack,
    with_place,
)
from numaproof.inputs.documents import (
    Document,
    DocumentError,
    MergedDocument,
    PathTuple,
    dotted_path,
    parts,
    value_at,
)
from numaproof.inputs.names import is_slip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_PATHS: tuple[PathTuple, ...] = (
    ("spec", "kubelet"),
    ("spec", "template", "spec", "kubelet"),
    ("spec", "kubeletConfiguration"),
    ("spec", "kubeletConfig"),
)
"""EC2NodeClass and AKSNodeClass; NodePool until v1beta1; Provisioner and GCENodeClass."""


_USER_DATA = ("spec", "userData")


def karpenter_formats(
    reader: Callable[[str, str], Iterator[Configuration]],
) -> tuple[Format, ...]:
    """Returns the formats of Karpenter's objects; `reader` reads the text of user data.

    Karpenter's own settings override those of the user data.
    """

    def read(document: Document, _: str) -> Iterator[Configuration]:
        product = f"a Karpenter {document.data.get('kind')}"
        path = next((one for one in _PATHS if value_at(document.data, one) is not None), None)
        layers = [*_user_data(document, reader)]
        if path is not None:
            source, fields = dotted_path(path), mapping_below(document, path)
            unknown = tuple(_unknown(document, path, fields))
            known = {one: part for one, part in parts(fields).items() if _has_field(document, one)}
            layers.append(
                Configuration(product, source, MergedDocument(fields, known), errors=unknown)
            )
        if not layers:
            raise nothing(document, product, *_PATHS[:2])
        name = name_of(document)
        yield stack(layers)._replace(product=product, name=name, adds_defaults="Karpenter")

    return tuple(
        Format(f"a Karpenter {kind}", read, _PATHS, group, (kind,)) for group, kind in _KINDS
    )


_OF_AWS = (
    "clusterDNS",
    "cpuCFSQuota",
    "evictionHard",
    "evictionMaxPodGracePeriod",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "kubeReserved",
    "maxPods",
    "podsPerCore",
    "systemReserved",
)
_SCHEMAS: dict[str, tuple[str, ...]] = {
    "EC2NodeClass": _OF_AWS,
    "NodePool": _OF_AWS,
    "Provisioner": (*_OF_AWS, "containerRuntime"),
    "AKSNodeClass": (
        "allowedUnsafeSysctls",
        "containerLogMaxFiles",
        "containerLogMaxSize",
        "cpuCFSQuota",
        "cpuCFSQuotaPeriod",
        "cpuManagerPolicy",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "podPidsLimit",
        "topologyManagerPolicy",
    ),
}
"""The fields of the kubelet that a kind has; those of the others aren't known here."""


def _has_field(document: Document, name: str) -> bool:
    kind = str(document.data.get("kind"))
    return kind not in _SCHEMAS or name in _SCHEMAS[kind]


def _unknown(document: Document, path: PathTuple, fields: Document) -> Iterator[DocumentError]:
    """Yields an error for each field that the API server does not know in this kind."""
    kind = str(document.data.get("kind"))
    fix = "remove it" if kind == "AKSNodeClass" else "write it in the userData of the EC2NodeClass"
    for name in fields.data:
        if not _has_field(document, name):
            slip = next((one for one in _SCHEMAS[kind] if is_slip(name, one)), "")
            meant = f"did you mean {slip}?" if slip else fix
            yield document.error((*path, name), f"unknown field of kind {kind}", meant)


def _user_data(
    document: Document, reader: Callable[[str, str], Iterator[Configuration]]
) -> Iterator[Configuration]:
    """Yields the configurations in user data; scripts that do not set flags have none."""
    text = value_at(document.data, _USER_DATA)
    if isinstance(text, str):
        file, line = document.locate(_USER_DATA)
        try:
            for found in reader("\n" * line + text, file):
                yield found._replace(source=f"spec.userData ({found.product})")
        except DocumentError as error:
            note = f"left out spec.userData: {error.message}"
            yield Configuration(
                "",
                "",
                MergedDocument(document, {}),
                notes=(with_place(document, _USER_DATA, note),),
            )


_KINDS = (
    ("karpenter.k8s.aws", "EC2NodeClass"),
    ("karpenter.azure.com", "AKSNodeClass"),
    ("karpenter.k8s.gcp", "GCENodeClass"),
    ("karpenter.sh", "NodePool"),
    ("karpenter.sh", "Provisioner"),
)
