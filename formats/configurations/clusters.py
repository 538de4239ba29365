"""Clusters with kubelet settings for all nodes and for groups of them.

(Gardener documentation, "Shoot"; kOps documentation, "Cluster Resource"; k0s documentation, "Worker
node configuration".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    find_path,
    items_at,
    mapping_below,
    misspelt,
    name_of,
    nothing,
    of_managers,
    scalar,
)
from numaproof.inputs.documents import Document, MergedDocument, dotted_path, parts, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOOT = "a Gardener Shoot"
_FOR_ALL = ("spec", "kubernetes", "kubelet")
_WORKERS = ("spec", "provider", "workers")


def _read_shoot(document: Document, _: str) -> Iterator[Configuration]:
    """Yields the configuration of each group of workers; its own replaces the one for all."""
    groups = items_at(document, _WORKERS)
    own = [value_at(group, ("kubernetes", "kubelet")) is not None for _, group in groups]
    if not any(own) and value_at(document.data, _FOR_ALL) is None:
        raise nothing(document, _SHOOT, _FOR_ALL, (*_WORKERS, 0, "kubernetes", "kubelet"))
    found = Configuration(
        _SHOOT,
        "spec.kubernetes.kubelet",
        _gardener_fields(mapping_below(document, _FOR_ALL)),
        adds_defaults="Gardener",
    )
    paths = [(*at, "kubernetes", "kubelet") for at, _ in groups]
    found = found._replace(errors=tuple(misspelt(document, paths)))
    if not groups:
        yield found
    for number, (at, group) in enumerate(groups):
        name = str(value_at(group, ("name",)) or number)
        if own[number]:
            path = (*at, "kubernetes", "kubelet")
            yield found._replace(
                source=dotted_path(path),
                document=_gardener_fields(mapping_below(document, path)),
                name=name,
            )
        else:
            yield found._replace(name=name)


_THRESHOLDS = {
    "memoryAvailable": "memory.available",
    "imageFSAvailable": "imagefs.available",
    "imageFSInodesFree": "imagefs.inodesFree",
    "nodeFSAvailable": "nodefs.available",
    "nodeFSInodesFree": "nodefs.inodesFree",
}
_RESOURCES = {"ephemeralStorage": "ephemeral-storage"}


def _gardener_fields(document: Document) -> Document:
    """Returns the fields of a KubeletConfiguration; Gardener spells keys of maps as fields."""
    found = parts(document)
    for name, names in (
        ("evictionHard", _THRESHOLDS),
        ("evictionSoft", _THRESHOLDS),
        ("kubeReserved", _RESOURCES),
        ("systemReserved", _RESOURCES),
    ):
        if name in found and isinstance(found[name].data, dict):
            entries = parts(found[name])
            found[name] = MergedDocument(
                found[name], {names.get(key, key): one for key, one in entries.items()}
            )
    return MergedDocument(document, found)


_KOPS_CLUSTER = "a kOps Cluster"
_KUBELET = ("spec", "kubelet")


def _read_kops(document: Document, _: str) -> Iterator[Configuration]:
    kind = document.data.get("kind")
    product = f"a kOps {kind}"
    found = parts(mapping_below(document, find_path(document, product, _KUBELET)))
    eviction = found.get("evictionHard")
    if eviction is not None and isinstance(eviction.data, str):
        pairs = (pair.partition("<") for pair in eviction.data.split(",") if "<" in pair)
        found["evictionHard"] = scalar(
            eviction, {key.strip(): one.strip() for key, _, one in pairs}
        )
    gates = found.get("featureGates")
    if gates is not None and isinstance(gates.data, dict):
        on = {"true": True, "false": False}
        found["featureGates"] = MergedDocument(
            gates,
            {
                key: scalar(one, on.get(str(one.data).lower(), one.data))
                for key, one in parts(gates).items()
            },
        )
    known = of_managers(found)
    result = Configuration(
        product,
        "spec.kubelet",
        MergedDocument(document, known),
        name=name_of(document),
        adds_defaults="kOps",
    )
    left = found.keys() - known.keys()
    yield result.note((), f"left out {', '.join(sorted(left))}") if left else result


_K0S = "a k0s configuration"
_PROFILES = ("spec", "workerProfiles")
_IN_K0SCTL = ("spec", "k0s", "config", *_PROFILES)


def _read_k0s(document: Document, _: str) -> Iterator[Configuration]:
    """Yields the configuration of each worker profile."""
    path = find_path(document, _K0S, _PROFILES, _IN_K0SCTL)
    for at, profile in items_at(document, path):
        yield Configuration(
            _K0S,
            dotted_path((*at, "values")),
            mapping_below(document, (*at, "values")),
            errors=tuple(misspelt(document, [(*at, "name"), (*at, "values")])),
            name=str(value_at(profile, ("name",)) or at[-1]),
            adds_defaults="k0s",
        )


FORMATS = (
    Format(_SHOOT, _read_shoot, (_FOR_ALL,), "core.gardener.cloud", ("Shoot",)),
    Format("a kOps cluster", _read_kops, (_KUBELET,), "kops.k8s.io", ("Cluster", "InstanceGroup")),
    Format("a kOps cluster", _read_kops, (_KUBELET,), "kops", ("Cluster", "InstanceGroup")),
    Format(_K0S, _read_k0s, (_PROFILES,), "k0s.k0sproject.io", ("ClusterConfig",)),
    Format(_K0S, _read_k0s, (_IN_K0SCTL,), "k0sctl.k0sproject.io", ("Cluster",)),
)
