"""A KubeletConfiguration, as the kubelet reads it with ``--config``, and as it prints it.

(Kubernetes documentation, "Kubelet Configuration (v1beta1)".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Format,
    mapping_below,
    no_configuration,
)
from numaproof.inputs.names import is_slip
from numaproof.reference.config import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import Document


API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"
HEAD = ("apiVersion", "kind")
FIX = f"use the file that the kubelet reads with --config, or the output of `{EFFECTIVE}`"


def read(document: Document, _: str = "") -> Iterator[Configuration]:
    """Yields the document itself.

    Raises:
        DocumentError: it is not a KubeletConfiguration.
    """
    content = document.data
    kind = content.get("kind")
    if kind is None or content.get("apiVersion") is None:
        for name in content:
            for wanted in HEAD:
                if wanted not in content and is_slip(name, wanted):
                    raise document.error((name,), "unknown field", f"did you mean {wanted}?")
        if not content.keys() & {*HEAD, *fields.DECODED}:
            message = (
                "not a KubeletConfiguration: it has no apiVersion, and no field of the managers"
            )
            raise document.error((), message, FIX)
    if kind not in (None, KIND):
        message = f"expected {KIND}, got {kind!r}"
        if is_slip(str(kind), KIND) or content.get("apiVersion") == API_VERSION:
            raise document.error(("kind",), message, f"set kind: {KIND}")
        message = f"an object of kind {kind}, not {KIND}"
        raise no_configuration(document, ("kind",), message, FIX)
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if content.get(key) != wanted:
            message = f"expected {wanted}, got {content.get(key)!r}"
            raise document.error((key,), message, f"set {key}: {wanted}")
    yield Configuration("", "", document)


_IN_CONFIGZ = ("kubeletconfig",)


def _read_configz(document: Document, _: str) -> Iterator[Configuration]:
    fields = mapping_below(document, _IN_CONFIGZ)
    yield Configuration("configz output", "kubeletconfig", fields)


CONFIGZ = Format("configz output", _read_configz, marks=(_IN_CONFIGZ,))
