"""Configuration files of k3s and RKE2, Rancher's clusters of these, and RKE1's cluster file.

A file in ``config.yaml.d`` replaces the flags of earlier files, unless its key ends with ``+``.
(K3s documentation, "Configuration Options"; RKE2 documentation, "Configuration Options"; Rancher
documentation, "RKE2 Cluster Configuration Reference"; RKE documentation, "Default Kubernetes
Services".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    listed_flags,
    mapped_flags,
    mapping_below,
    nothing,
)
from numaproof.inputs.documents import MergedDocument, dotted_path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import Document, PathTuple

_PRODUCT = "a k3s or RKE2 configuration"
_ADDS = "k3s and RKE2"
_ARG, _MORE = "kubelet-arg", "kubelet-arg+"


def _read(document: Document, _: str) -> Iterator[Configuration]:
    yield _at(document, (), _PRODUCT)


def _at(document: Document, path: PathTuple, product: str) -> Configuration:
    settings = mapping_below(document, path)
    flags = tuple(
        flag
        for name in settings.data
        if name in (_ARG, _MORE) and settings.data[name] is not None
        for flag in listed_flags(settings.below((name,)))
    )
    return Configuration(
        product,
        dotted_path((*path, _ARG)),
        MergedDocument(document, {}),
        flags,
        adds_defaults=_ADDS,
        replaces_flags=_ARG in settings.data,
    )


_CONFIG = ("spec", "rkeConfig")
_GLOBAL = (*_CONFIG, "machineGlobalConfig")
_SELECTED = (*_CONFIG, "machineSelectorConfig")


def _read_cluster(document: Document, _: str) -> Iterator[Configuration]:
    """Yields the configuration of all machines, and those with further settings."""
    product = "a Rancher cluster"
    base = _at(document, _GLOBAL, product)
    several = value_at(document.data, _SELECTED) or ()
    if not base.flags and not several:
        raise nothing(document, product, (*_GLOBAL, _ARG))
    found = [
        _at(document, (*_SELECTED, number, "config"), product)._replace(
            name="machines" if not selector else ",".join(f"{k}={v}" for k, v in selector.items())
        )
        for number, selector in enumerate(
            value_at(one, ("machineLabelSelector", "matchLabels")) for one in several
        )
    ]
    everywhere = [one for one in found if one.name == "machines" and one.flags]
    for one in everywhere:
        base = one.on(base)
    selected = [one for one in found if one.name != "machines" and one.flags]
    yield base._replace(name="others" if selected else "")
    yield from (one.on(base)._replace(name=one.name) for one in selected)


_SERVICE = ("services", "kubelet")
_EXTRA = (*_SERVICE, "extra_args")


def _read_rke1(document: Document, _: str) -> Iterator[Configuration]:
    if value_at(document.data, _EXTRA) is None:
        raise nothing(document, "an RKE cluster file", _EXTRA)
    flags = tuple(mapped_flags(mapping_below(document, _EXTRA)))
    yield Configuration(
        "an RKE cluster file",
        ".".join(_EXTRA),
        MergedDocument(document, {}),
        flags,
        adds_defaults="RKE",
    )


FORMATS = (
    Format(_PRODUCT, _read, ((_ARG,), (_MORE,))),
    Format("a Rancher cluster", _read_cluster, (_CONFIG,), "provisioning.cattle.io", ("Cluster",)),
    Format("an RKE cluster file", _read_rke1, (_SERVICE,)),
)
