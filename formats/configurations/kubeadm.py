"""kubeadm's configuration files, and those of the Cluster API's kubeadm provider.

A KubeletConfiguration in the same file is a document of its own. (Kubernetes documentation,
"kubeadm Configuration (v1beta4)"; Cluster API, "Kubeadm based bootstrap".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Flag,
    Format,
    flag_name,
    items_at,
    mapped_flags,
    misspelt,
    scalar,
    text_of,
)
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.inputs.documents import Document, MergedDocument, PathTuple, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator


_PRODUCT = "a kubeadm configuration"
_KINDS = {"InitConfiguration": "init", "JoinConfiguration": "join"}
_KUBEADM = "kubeadm.k8s.io"
_GROUPS = ("bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io")
_WITH_MAPPING = (
    *(f"{_KUBEADM}/v1beta{number}" for number in (1, 2, 3)),
    *(f"{group}/v1beta1" for group in _GROUPS),
)
_WITH_LIST = (f"{_KUBEADM}/v1beta4", *(f"{group}/v1beta2" for group in _GROUPS))
"""The versions with ``kubeletExtraArgs`` in each form."""

EXTRA_ARGS = ("nodeRegistration", "kubeletExtraArgs")


def extra_args(document: Document, path: PathTuple = EXTRA_ARGS) -> tuple[Flag, ...]:
    """Returns the kubelet's flags in a mapping or a list of names and values.

    Raises:
        DocumentError: an entry has no name or a wrong one, or the version has the other form.
    """
    value = value_at(document.data, path)
    version = str(document.data.get("apiVersion"))
    if isinstance(value, list) and version in _WITH_MAPPING:
        raise document.error(path, f"must be a mapping in {version}", "write NAME: VALUE")
    if isinstance(value, dict) and version in _WITH_LIST:
        fix = "write entries with name and value"
        raise document.error(path, f"must be a list in {version}", fix)
    if isinstance(value, dict):
        return tuple(mapped_flags(document.below(path)))
    found = []
    for at, entry in items_at(document, path):
        name = value_at(entry, ("name",))
        if not isinstance(name, str):
            raise document.error(at, "must have a name", "write name and value")
        place = document.below(at)
        flag_value = text_of(value_at(entry, ("value",)))
        found.append(Flag(flag_name(name, place), flag_value, scalar(place, flag_value)))
    return tuple(found)


def _read(document: Document, _: str) -> Iterator[Configuration]:
    """Yields the flags of one node; there are none in a ClusterConfiguration."""
    yield Configuration(
        _PRODUCT,
        "",
        MergedDocument(document, {}),
        extra_args(document),
        adds_defaults="kubeadm",
        role=_KINDS.get(str(document.data.get("kind")), ""),
    )


_ROLES = {"initConfiguration": "init", "joinConfiguration": "join"}


def _read_cluster_api(document: Document, text: str) -> Iterator[Configuration]:
    """Yields the configuration of nodes that initialize the cluster, and of those that join it.

    Files for kubeadm's ``patches`` directory patch the KubeletConfiguration.
    """
    kind = str(document.data.get("kind"))
    bases: tuple[PathTuple, ...] = (
        ("spec", "template", "spec", "kubeadmConfigSpec"),
        ("spec", "kubeadmConfigSpec"),
        ("spec", "template", "spec"),
        ("spec",),
    )
    at = next(path for path in bases if value_at(document.data, path) is not None or len(path) == 1)
    fields: Configuration | None = None
    for place, file in items_at(document, (*at, "files")):
        content = value_at(file, ("content",))
        path = str(value_at(file, ("path",)))
        name = path.rpartition("/")[2]
        if isinstance(content, str) and name.startswith("kubeletconfiguration"):
            for inner in inner_documents(document, (*place, "content"), content, text):
                layer = Configuration("", path, inner)
                fields = layer.on(fields) if fields else layer
    base = fields or Configuration("", "", MergedDocument(document, {}))
    errors = tuple(misspelt(document, [(*at, role, *EXTRA_ARGS) for role in _ROLES]))
    for role, name in _ROLES.items():
        if value_at(document.data, (*at, role)) is None:
            continue
        flags = extra_args(document, (*at, role, *EXTRA_ARGS))
        yield base._replace(
            product=f"a {kind}",
            source=base.source or ".".join((*map(str, at), role)),
            flags=flags,
            name=name,
            errors=errors,
            adds_defaults="kubeadm",
        )


FORMAT = Format(
    _PRODUCT,
    _read,
    (EXTRA_ARGS,),
    _KUBEADM,
    ("ClusterConfiguration", "InitConfiguration", "JoinConfiguration"),
)
CLUSTER_API = tuple(
    Format(f"a {kind}", _read_cluster_api, (), group, (kind, f"{kind}Template"))
    for group, kind in (
        (_GROUPS[0], "KubeadmConfig"),
        (_GROUPS[1], "KubeadmControlPlane"),
    )
)
