"""Amazon EKS: nodeadm's NodeConfig, and eksctl's ClusterConfig.

(amazon-eks-ami, "nodeadm API Reference"; eksctl documentation, "Customizing kubelet
configuration".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations import bottlerocket, command_lines, wrappers
from numaproof.formats.configurations.configuration import (
    Configuration,
    Flag,
    Format,
    cluster_api_flags,
    find_path,
    items_at,
    joined_flags,
    mapped_flags,
    mapping_below,
    nothing,
    stack,
)
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.inputs.documents import Document, dotted_path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import PathTuple


_NODE_CONFIG, _NODE_CONFIG_MARK = "an EKS NodeConfig", "node.eks.aws"
_KUBELET = ("spec", "kubelet")
_FIELDS, _FLAGS = (*_KUBELET, "config"), (*_KUBELET, "flags")


def _read_node_config(document: Document, _: str) -> Iterator[Configuration]:
    find_path(document, _NODE_CONFIG, _FIELDS, _FLAGS)
    has_flags = value_at(document.data, _FLAGS) is not None
    yield Configuration(
        _NODE_CONFIG,
        "spec.kubelet",
        mapping_below(document, _FIELDS),
        tuple(joined_flags(document.below(_FLAGS))) if has_flags else (),
        adds_defaults="EKS",
    )


_CLUSTER = "an eksctl ClusterConfig"
_GROUPS = ("nodeGroups", "managedNodeGroups")
_EXTRA, _SCRIPT = "kubeletExtraConfig", "overrideBootstrapCommand"


_BOTTLEROCKET = ("bottlerocket", "settings", "kubernetes")


def _replacing_script(
    document: Document, at: PathTuple, group: Any, text: str
) -> Configuration | None:
    """Returns what replaces a group's bootstrap script: a script with flags, or a NodeConfig."""
    script, place = value_at(group, (_SCRIPT,)), (*at, _SCRIPT)
    if not isinstance(script, str):
        return None
    if wrappers.MENTION.search(script):
        return command_lines.inside(document, place, script, text)
    if _NODE_CONFIG_MARK not in script:
        return None
    found = [
        one
        for inner in inner_documents(document, place, script, text)
        if inner.data.get("kind") == "NodeConfig"
        for one in _read_node_config(inner, text)
    ]
    return stack(found) if found else None


def _layers(
    document: Document, at: PathTuple, group: Any, text: str
) -> Iterator[tuple[PathTuple, Configuration]]:
    """Yields the parts of a group that configure its kubelets, and the place of each."""
    if value_at(group, (_EXTRA,)) is not None:
        yield (_EXTRA,), Configuration("", "", mapping_below(document, (*at, _EXTRA)))
    if value_at(group, _BOTTLEROCKET) is not None:
        mapping_below(document, (*at, *_BOTTLEROCKET))
        yield _BOTTLEROCKET, bottlerocket.read_settings(document.below((*at, _BOTTLEROCKET[0])))
    if script := _replacing_script(document, at, group, text):
        yield (_SCRIPT,), script


def _read_cluster(document: Document, text: str) -> Iterator[Configuration]:
    groups = [one for kind in _GROUPS for one in items_at(document, (kind,))]
    is_empty = True
    for at, group in groups:
        layers = [*_layers(document, at, group, text)]
        if not layers:
            continue
        is_empty = False
        found = stack([layer for _, layer in layers])
        found = found._replace(
            product=_CLUSTER,
            source=" and ".join(dotted_path((*at, *path)) for path, _ in layers),
            name=str(value_at(group, ("name",)) or at[-1]),
            adds_defaults=found.adds_defaults or "EKS",
        )
        paths = [path for path, _ in layers]
        if (_EXTRA,) in paths and (_SCRIPT,) in paths:
            found = found.note((), f"{_SCRIPT} decides whether {_EXTRA} counts")
        yield found
    if is_empty:
        places = [at for at, _ in groups] or [("nodeGroups", 0)]
        raise nothing(document, _CLUSTER, *((*at, _EXTRA) for at in places))


_ARGS = "kubeletExtraArgs"


def _read_cluster_api(document: Document, _: str) -> Iterator[Configuration]:
    def read(document: Document, path: PathTuple) -> Iterator[Flag]:
        return mapped_flags(mapping_below(document, path))

    yield cluster_api_flags(document, (_ARGS,), read, adds_defaults="EKS")


FORMATS = (
    *(
        Format(f"an {kind}", _read_cluster_api, (), "bootstrap.cluster.x-k8s.io", (kind,))
        for kind in ("EKSConfig", "EKSConfigTemplate")
    ),
    Format(_NODE_CONFIG, _read_node_config, (_FLAGS, _FIELDS), "node.eks.aws", ("NodeConfig",)),
    Format(
        _CLUSTER,
        _read_cluster,
        (("nodeGroups",), ("managedNodeGroups",)),
        "eksctl.io",
        ("ClusterConfig",),
    ),
)
