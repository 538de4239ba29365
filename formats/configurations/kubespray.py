"""Kubespray's variables.

(Kubespray documentation, "Configurable Parameters in Kubespray".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    joined_flags,
    mapping_below,
    scalar,
    text_of,
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
_SCOPES = ("kube", "system")
_RESOURCES = ("cpu", "memory", "ephemeral_storage", "pid")


def _is_settled(document: Document, scope: str) -> bool:
    """Whether a file says by itself what a scope reserves."""
    switch = document.data.get(f"{scope}_reserved")
    return switch is False or bool(_reserved(document, scope).data)


def _reserved(document: Document, scope: str) -> Document:
    """Returns what a scope reserves, if its switch is on in the same file."""
    entries = {}
    if document.data.get(f"{scope}_reserved") is True:
        for resource in _RESOURCES:
            name = f"{scope}_{resource}_reserved"
            if name in document.data:
                place = document.below((name,))
                entries[resource.replace("_", "-")] = scalar(place, text_of(place.data))
    return MergedDocument(document, entries)


def _read(document: Document, _: str) -> Iterator[Configuration]:
    found = parts(document)
    named = {field: found[name] for name, field in _VARIABLES.items() if name in found}
    fields: Document = MergedDocument(document, named)
    for name in _FIELDS:
        fields = apply_patch(fields, mapping_below(document, (name,)))
    flags = [flag for name in _FLAGS if name in found for flag in joined_flags(found[name])]
    reserved = {f"{scope}Reserved": _reserved(document, scope) for scope in _SCOPES}
    fields = apply_patch(
        MergedDocument(document, {name: one for name, one in reserved.items() if one.data}), fields
    )
    left = [
        name
        for name in found
        for scope in _SCOPES
        if name.endswith("_reserved") and name.startswith(f"{scope}_")
        if name.startswith(f"{scope}_master_") or not _is_settled(document, scope)
    ]
    result = Configuration(
        _PRODUCT, "kubelet_* variables", fields, tuple(flags), adds_defaults="Kubespray"
    )
    if left:
        text = f"left out {', '.join(left)}: what they reserve depends on other files"
        result = result._replace(notes=(f"{document.file}:{document.line((left[0],))}: {text}",))
    yield result


FORMAT = Format(_PRODUCT, _read, tuple((name,) for name in (*_VARIABLES, *_FIELDS, *_FLAGS)))
