"""Talos' machine configuration.

(Talos documentation, "v1alpha1.Config".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    find_path,
    mapped_flags,
    mapping_below,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import Document


_PRODUCT = "a Talos machine configuration"
_KUBELET = ("machine", "kubelet")
_FIELDS, _FLAGS = (*_KUBELET, "extraConfig"), (*_KUBELET, "extraArgs")


def _read(document: Document, _: str) -> Iterator[Configuration]:
    find_path(document, _PRODUCT, _FIELDS, _FLAGS)
    yield Configuration(
        _PRODUCT,
        "machine.kubelet",
        mapping_below(document, _FIELDS),
        tuple(mapped_flags(mapping_below(document, _FLAGS))),
        adds_defaults="Talos",
    ).note((), "the file that Talos generates: talosctl read /etc/kubernetes/kubelet.yaml")


FORMAT = Format(_PRODUCT, _read, (_KUBELET, _FIELDS, _FLAGS, ("machine",)))
