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
    value_at,
)

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
            layers.append(Configuration(product, source, fields))
        if not layers:
            raise nothing(document, product, *_PATHS[:2])
        name = name_of(document)
        yield stack(layers)._replace(product=product, name=name, adds_defaults="Karpenter")

    return tuple(
        Format(f"a Karpenter {kind}", read, _PATHS, group, (kind,)) for group, kind in _KINDS
    )


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
