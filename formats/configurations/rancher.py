"""Configuration files of k3s and RKE2, clusters of these, and RKE1's cluster file.

A file in ``config.yaml.d`` replaces the flags of earlier files, unless its key ends with ``+``.
(K3s documentation, "Configuration Options"; RKE2 documentation, "Configuration Options"; Cluster
API provider RKE2; Rancher documentation, "RKE2 Cluster Configuration Reference"; RKE documentation,
"Default Kubernetes Services".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Flag,
    Format,
    cluster_api_flags,
    find_path,
    items_at,
    listed_flags,
    mapped_flags,
    mapping_below,
    misspelt,
    nothing,
)
from numaproof.inputs.documents import Document, MergedDocument, PathTuple, dotted_path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator


_PRODUCT = "a k3s or RKE2 configuration"
_ADDS = "k3s and RKE2"
_ARG, _MORE = "kubelet-arg", "kubelet-arg+"


def _read(document: Document, _: str) -> Iterator[Configuration]:
    yield read_file(document)


def read_file(document: Document) -> Configuration:
    """Returns the flags in a configuration file of k3s or RKE2."""
    return _at(document, (), _PRODUCT)


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
        errors=tuple(misspelt(settings, [(_ARG,)])) if path else (),
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
    several = items_at(document, _SELECTED)
    if not base.flags and not several:
        raise nothing(document, product, (*_GLOBAL, _ARG))
    found = []
    for at, one in several:
        labels = value_at(one, ("machineLabelSelector", "matchLabels"))
        pairs = labels.items() if isinstance(labels, dict) else ()
        name = ",".join(f"{label}={value}" for label, value in pairs) or "machines"
        found.append(_at(document, (*at, "config"), product)._replace(name=name))
    everywhere = [one for one in found if one.name == "machines" and one.flags]
    for one in everywhere:
        base = one.on(base)
    selected = [one for one in found if one.name != "machines" and one.flags]
    yield base._replace(name="others" if selected else "")
    yield from (one.on(base)._replace(name=one.name) for one in selected)


_SERVICE = ("services", "kubelet")
_EXTRA, _ARRAYS = (*_SERVICE, "extra_args"), (*_SERVICE, "extra_args_array")


def _read_rke1(document: Document, _: str) -> Iterator[Configuration]:
    """Yields the flags; RKE writes those with several values behind the others."""
    find_path(document, "an RKE cluster file", _EXTRA, _ARRAYS)
    yield Configuration(
        "an RKE cluster file",
        ".".join(_SERVICE),
        MergedDocument(document, {}),
        tuple(
            flag
            for path in (_EXTRA, _ARRAYS)
            for flag in mapped_flags(mapping_below(document, path))
        ),
        adds_defaults="RKE",
    )


_AGENT_ARGS = ("agentConfig", "kubelet", "extraArgs")


def _read_cluster_api(document: Document, _: str) -> Iterator[Configuration]:
    def read(document: Document, path: PathTuple) -> Iterator[Flag]:
        return listed_flags(document.below(path))

    yield cluster_api_flags(document, _AGENT_ARGS, read, adds_defaults="RKE2")


FORMATS = (
    Format(_PRODUCT, _read, ((_ARG,), (_MORE,))),
    Format(
        "a Rancher cluster",
        _read_cluster,
        (_GLOBAL, _SELECTED),
        "provisioning.cattle.io",
        ("Cluster",),
    ),
    Format("an RKE cluster file", _read_rke1, (_SERVICE,)),
    *(
        Format(f"a {kind}", _read_cluster_api, (), f"{group}.cluster.x-k8s.io", (kind,))
        for group, kind in (
            ("bootstrap", "RKE2Config"),
            ("bootstrap", "RKE2ConfigTemplate"),
            ("controlplane", "RKE2ControlPlane"),
        )
    ),
)
