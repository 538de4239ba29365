"""Amazon EKS: nodeadm's NodeConfig, and eksctl's ClusterConfig.

(amazon-eks-ami, "nodeadm API Reference"; eksctl documentation, "Customizing kubelet
configuration".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations import command_lines, wrappers
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
)
from numaproof.inputs.documents import Document, dotted_path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.inputs.documents import PathTuple


_NODE_CONFIG = "an EKS NodeConfig"
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


def _bootstrap_scripts(
    document: Document, groups: Sequence[tuple[PathTuple, Any]], text: str
) -> Iterator[tuple[PathTuple, Configuration]]:
    """Yields the groups that replace the bootstrap script, with the flags in it."""
    for at, group in groups:
        script, place = value_at(group, (_SCRIPT,)), (*at, _SCRIPT)
        if isinstance(script, str) and wrappers.MENTION.search(script):
            yield (
                at,
                command_lines.inside(document, place, script, text)._replace(
                    product=_CLUSTER,
                    source=dotted_path(place),
                    name=str(value_at(group, ("name",)) or at[-1]),
                    adds_defaults="EKS",
                ),
            )


def _read_cluster(document: Document, text: str) -> Iterator[Configuration]:
    groups = [one for kind in _GROUPS for one in items_at(document, (kind,))]
    own = [(at, group) for at, group in groups if value_at(group, (_EXTRA,)) is not None]
    scripts = dict(_bootstrap_scripts(document, groups, text))
    if not own and not scripts:
        places = [at for at, _ in groups] or [("nodeGroups", 0)]
        raise nothing(document, _CLUSTER, *((*at, _EXTRA) for at in places))
    for at, group in own:
        found = Configuration(
            _CLUSTER,
            dotted_path((*at, _EXTRA)),
            mapping_below(document, (*at, _EXTRA)),
            name=str(value_at(group, ("name",)) or at[-1]),
            adds_defaults="EKS",
        )
        if script := scripts.pop(at, None):
            note = f"{_SCRIPT} decides whether {_EXTRA} counts"
            found = script.on(found)._replace(name=found.name).note((), note)
        yield found
    yield from scripts.values()


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
