"""Clusters with kubelet settings for all nodes and for groups of them.

(Gardener documentation, "Shoot"; kOps documentation, "Cluster Resource"; k0s documentation, "Worker
node configuration".)
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from numaproof.formats.configurations import command_lines
from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    NoConfigurationError,
    find_path,
    items_at,
    mapping_below,
    misspelt,
    name_of,
    nothing,
    of_managers,
    scalar,
    stack,
    text_of,
)
from numaproof.inputs.documents import (
    Document,
    MergedDocument,
    apply_patch,
    dotted_path,
    parts,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
_QUANTITIES = ("kubeReserved", "systemReserved", "evictionMinimumReclaim")
"""Maps whose values are quantities in a Shoot, so that they may be numbers."""


def _gardener_fields(document: Document) -> Document:
    """Returns the fields of a KubeletConfiguration; Gardener spells keys of maps as fields."""
    found = parts(document)
    for name, names in (
        ("evictionHard", _THRESHOLDS),
        ("evictionSoft", _THRESHOLDS),
        ("evictionMinimumReclaim", _THRESHOLDS),
        ("kubeReserved", _RESOURCES),
        ("systemReserved", _RESOURCES),
    ):
        if name in found and isinstance(found[name].data, dict):
            entries = parts(found[name])
            if name in _QUANTITIES:
                entries = {key: _as_text(one) for key, one in entries.items()}
            found[name] = MergedDocument(
                found[name], {names.get(key, key): one for key, one in entries.items()}
            )
    return MergedDocument(document, found)


def _as_text(document: Document) -> Document:
    """Returns a number as a text."""
    is_number = isinstance(document.data, int | float) and not isinstance(document.data, bool)
    return scalar(document, text_of(document.data)) if is_number else document


_KOPS_CLUSTER = "a kOps Cluster"
_KOPS_GROUPS = ("kops.k8s.io", "kops")
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


_OF_CONTROL_PLANE = (("spec", "controlPlaneKubelet"), ("spec", "masterKubelet"))


def merge_kops_clusters(documents: Sequence[Document]) -> Iterator[Document]:
    """Yields documents with each kOps Cluster merged into its InstanceGroups, as kOps does.

    A group's own settings override those of the cluster. Control planes have settings of their own.
    """
    clusters = {name_of(one): one for one in documents if _is_kops(one, "Cluster")}
    groups = {
        id(one): value_at(one.data, ("metadata", "labels", "kops.k8s.io/cluster"))
        or (next(iter(clusters)) if len(clusters) == 1 else None)
        for one in documents
        if _is_kops(one, "InstanceGroup")
    }
    for document in documents:
        name = groups.get(id(document))
        if name in clusters:
            yield _with_cluster(document, clusters[name])
        elif not (_is_kops(document, "Cluster") and name_of(document) in groups.values()):
            yield document


def _is_kops(document: Document, kind: str) -> bool:
    content = document.data
    group = str(value_at(content, ("apiVersion",))).partition("/")[0]
    return group in _KOPS_GROUPS and content.get("kind") == kind


def _with_cluster(group: Document, cluster: Document) -> Document:
    """Returns an InstanceGroup with the settings of its cluster below its own.

    Raises:
        DocumentError: the cluster's settings are misspelt.
    """
    role = value_at(group.data, ("spec", "role"))
    paths = _OF_CONTROL_PLANE if role in ("Master", "ControlPlane") else (_KUBELET,)
    with suppress(NoConfigurationError):
        base = mapping_below(cluster, find_path(cluster, _KOPS_CLUSTER, *paths))
        merged = apply_patch(base, mapping_below(group, _KUBELET))
        spec = mapping_below(group, ("spec",))
        whole = MergedDocument(spec, {**parts(spec), "kubelet": merged})
        return MergedDocument(group, {**parts(group), "spec": whole})
    return group


_K0S = "a k0s configuration"
_PROFILES = ("spec", "workerProfiles")
_IN_K0SCTL = ("spec", "k0s", "config", *_PROFILES)


_HOSTS = ("spec", "hosts")
_INSTALL_FLAGS = ("installFlags",)


def _read_k0sctl(document: Document, text: str) -> Iterator[Configuration]:
    """Yields the configuration of each host with flags of the kubelet; of profiles otherwise."""
    hosts = [*_k0s_hosts(document, text)]
    has_profiles = value_at(document.data, _IN_K0SCTL) is not None
    profiles = {one.name: one for one in _read_k0s(document, text)} if has_profiles else {}
    if not hosts and not profiles:
        raise nothing(document, _K0S, _IN_K0SCTL, (*_HOSTS, 0, *_INSTALL_FLAGS))
    for profile, host in hosts:
        base = profiles.get(profile)
        yield host.on(base)._replace(name=host.name) if base else host
    if not hosts:
        yield from profiles.values()


def _k0s_hosts(document: Document, text: str) -> Iterator[tuple[str, Configuration]]:
    """Yields the flags of each host that has some, and the name of its worker profile."""
    for at, host in items_at(document, _HOSTS):
        found: list[Configuration] = []
        profile = "default"
        for place, flag in items_at(document, (*at, *_INSTALL_FLAGS)):
            if str(flag).startswith("--profile="):
                profile = str(flag).partition("=")[2]
            elif isinstance(flag, str) and flag.startswith("--kubelet-extra-args"):
                found.append(command_lines.inside(document, place, flag, text))
        if found:
            addresses = (("hostname",), ("ssh", "address"), ("openSSH", "address"))
            names = (value_at(host, path) for path in addresses)
            yield (
                profile,
                stack(found)._replace(
                    product=_K0S,
                    source=dotted_path((*at, *_INSTALL_FLAGS)),
                    name=str(next(filter(None, names), at[-1])),
                    adds_defaults="k0s",
                ),
            )


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
    *(
        Format("a kOps cluster", _read_kops, (_KUBELET,), group, ("Cluster", "InstanceGroup"))
        for group in _KOPS_GROUPS
    ),
    Format(_K0S, _read_k0s, (_PROFILES,), "k0s.k0sproject.io", ("ClusterConfig",)),
    Format(_K0S, _read_k0sctl, (_IN_K0SCTL,), "k0sctl.k0sproject.io", ("Cluster",)),
)
