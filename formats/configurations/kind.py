"""kind's cluster files.

Patches are applied to what kubeadm gets on each node. kubeadm takes the KubeletConfiguration only
from the first control-plane node, and gives it to all others. (kind documentation,
"Configuration"; kubeadm issue 1682.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations import plain
from numaproof.formats.configurations.configuration import (
    Configuration,
    Flag,
    Format,
    items_at,
    with_place,
)
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.formats.configurations.kubeadm import extra_args
from numaproof.inputs.documents import Document, MergedDocument, PathTuple, apply_patch, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_PRODUCT = "a kind cluster"
_PATCHES = ("kubeadmConfigPatches",)
_FIRST, _INIT, _JOIN = "control-plane", "InitConfiguration", "JoinConfiguration"
_OTHERS = {"ClusterConfiguration", "KubeProxyConfiguration"}
"""Kinds that kubeadm takes, but that don't configure the kubelet."""

_UNKNOWN = "kind generates no object of this kind"
_REASONS = {
    _INIT: f"only the first {_FIRST} node initializes the cluster",
    _JOIN: f"only nodes other than the first {_FIRST} node join the cluster",
    plain.KIND: f"nodes that join the cluster get that of the first {_FIRST} node",
}
"""Why a patch with one of these kinds has no effect."""


def _patches(document: Document, at: PathTuple, text: str) -> Iterator[Document]:
    for place, patch in items_at(document, (*at, *_PATCHES)):
        if not isinstance(patch, str):
            raise document.error(place, "must be a text", "write the patch after a |")
        yield from inner_documents(document, place, patch, text)


def _read(document: Document, text: str) -> Iterator[Configuration]:
    cluster = [*_patches(document, (), text)]
    nodes = items_at(document, ("nodes",))
    roles = [str(value_at(node, ("role",)) or _FIRST) for _, node in nodes] or [_FIRST]
    own = [[*_patches(document, at, text)] for at, _ in nodes] or [[]]
    if _FIRST not in roles:
        fix = f"add a node with role: {_FIRST}"
        raise document.error(("nodes",), f"no {_FIRST} node, without which kind fails", fix)
    first = roles.index(_FIRST)
    fields: Document = MergedDocument(document, {})
    gates = document.data.get("featureGates")
    if isinstance(gates, dict):
        fields = MergedDocument(document, {"featureGates": document.below(("featureGates",))})
    for patch in (*cluster, *own[first]):
        if patch.data.get("kind") == plain.KIND:
            fields = apply_patch(fields, patch)
    base = Configuration(_PRODUCT, "kubeadmConfigPatches", fields, adds_defaults="kind and kubeadm")
    base = _left_out(document, base)
    joins = len(roles) > 1
    base = base._replace(
        notes=(*base.notes, *_without_effect(cluster, "", {plain.KIND, _INIT, *joins * [_JOIN]}))
    )
    for number, role in enumerate(roles):
        before = roles[:number].count(role)
        name = f"{role}{before + 1}" if before else role
        kind = _INIT if number == first else _JOIN
        flags: dict[str, Flag] = {}
        for patch in (*cluster, *own[number]):
            if patch.data.get("kind") == kind:
                flags |= {flag.name: flag for flag in extra_args(patch)}
        kinds = {kind, *(number == first) * [plain.KIND]}
        notes = (*base.notes, *_without_effect(own[number], name, kinds))
        yield base._replace(name=name, flags=tuple(flags.values()), notes=notes)


def _without_effect(patches: Sequence[Document], node: str, kinds: set[str]) -> Iterator[str]:
    """Yields a note for each patch that changes nothing for a node, or for the cluster."""
    for patch in patches:
        kind = str(patch.data.get("kind"))
        if kind not in kinds | _OTHERS:
            of = f" of {node}" if node else ""
            text = f"left out a patch{of} with kind {kind}: {_REASONS.get(kind, _UNKNOWN)}"
            yield with_place(patch, (), text)


def _left_out(document: Document, cluster: Configuration) -> Configuration:
    name = "kubeadmConfigPatchesJSON6902"
    places: list[PathTuple] = [(name,)]
    places += [(*at, name) for at, _ in items_at(document, ("nodes",))]
    for place in places:
        if value_at(document.data, place):
            file, line = document.locate(place)
            note = f"{file}:{line}: left out {name}: write these patches as kubeadmConfigPatches"
            cluster = cluster._replace(notes=(*cluster.notes, note))
    return cluster


FORMAT = Format(_PRODUCT, _read, (_PATCHES,), "kind.x-k8s.io", ("Cluster",))
