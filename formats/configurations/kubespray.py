"""Kubespray's variables.

(Kubespray documentation, "Configurable Parameters in Kubespray".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    listed_flags,
    mapping_below,
)
from numaproof.inputs.documents import Document, MergedDocument, apply_patch, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRODUCT = "a file of Kubespray variables"
_VARIABLES = {
    "kubelet_cpu_manager_policy": "cpuManagerPolicy",
    "kubelet_cpu_manager_policy_options": "cpuManagerPolicyOptions",
    "kubelet_topology_manager_policy": "topologyManagerPolicy",
    "kubelet_topology_manager_scope": "topologyManagerScope",
    "kubelet_max_pods": "maxPods",
}
_FIELDS = ("kubelet_config_extra_args", "kubelet_node_config_extra_args")
_FLAGS = ("kubelet_custom_flags", "kubelet_node_custom_flags")


def _read(document: Document, _: str) -> Iterator[Configuration]:
    found = parts(document)
    named = {field: found[name] for name, field in _VARIABLES.items() if name in found}
    fields: Document = MergedDocument(document, named)
    for name in _FIELDS:
        fields = apply_patch(fields, mapping_below(document, (name,)))
    flags = [flag for name in _FLAGS if name in found for flag in listed_flags(found[name])]
    left = [
        name
        for name in found
        if name.endswith("_reserved") and name.startswith(("kube_", "system_"))
    ]
    result = Configuration(
        _PRODUCT, "kubelet_* variables", fields, tuple(flags), adds_defaults="Kubespray"
    )
    if left:
        text = f"left out {', '.join(left)}: whether they apply depends on other variables"
        result = result._replace(notes=(f"{document.file}:{document.line((left[0],))}: {text}",))
    yield result


FORMAT = Format(_PRODUCT, _read, tuple((name,) for name in (*_VARIABLES, *_FIELDS, *_FLAGS)))
