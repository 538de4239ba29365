"""Amazon EKS: nodeadm's NodeConfig, and eksctl's ClusterConfig.

(amazon-eks-ami, "nodeadm API Reference"; eksctl documentation, "Customizing kubelet
configuration".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    listed_flags,
    mapping_below,
    nothing,
)
from numaproof.inputs.documents import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.documents import Document

_NODE_CONFIG = "an EKS NodeConfig"
_KUBELET = ("spec", "kubelet")
_FIELDS, _FLAGS = (*_KUBELET, "config"), (*_KUBELET, "flags")


def _read_node_config(document: Document, _: str) -> Iterator[Configuration]:
    if value_at(document.data, _FIELDS) is None and value_at(document.data, _FLAGS) is None:
        raise nothing(document, _NODE_CONFIG, _FIELDS, _FLAGS)
    has_flags = value_at(document.data, _FLAGS) is not None
    yield Configuration(
        _NODE_CONFIG,
        "spec.kubelet",
        mapping_below(document, _FIELDS),
        tuple(listed_flags(document.below(_FLAGS))) if has_flags else (),
        adds_defaults="EKS",
    )


_CLUSTER = "an eksctl ClusterConfig"
_GROUPS = ("nodeGroups", "managedNodeGroups")
_EXTRA = "kubeletExtraConfig"


def _read_cluster(document: Document, _: str) -> Iterator[Configuration]:
    found = False
    for kind in _GROUPS:
        for number, group in enumerate(document.data.get(kind) or ()):
            path = (kind, number, _EXTRA)
            if value_at(group, (_EXTRA,)) is not None:
                found = True
                yield Configuration(
                    _CLUSTER,
                    f"{kind}[{number}].{_EXTRA}",
                    mapping_below(document, path),
                    name=str(value_at(group, ("name",)) or number),
                    adds_defaults="EKS",
                )
    if not found:
        paths = [
            (kind, n, _EXTRA) for kind in _GROUPS for n in range(len(document.data.get(kind) or ()))
        ]
        raise nothing(document, _CLUSTER, *(paths or [("nodeGroups", 0, _EXTRA)]))


FORMATS = (
    Format(_NODE_CONFIG, _read_node_config, (_FLAGS,), "node.eks.aws", ("NodeConfig",)),
    Format(
        _CLUSTER,
        _read_cluster,
        (("nodeGroups",), ("managedNodeGroups",)),
        "eksctl.io",
        ("ClusterConfig",),
    ),
)
