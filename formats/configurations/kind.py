"""kind's cluster files.

Patches are applied to what kubeadm gets on each node. kubeadm takes the KubeletConfiguration only
from the first control-plane node, and gives it to all others. (kind documentation,
"Configuration"; kubeadm issue 1682.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations import plain
from numaproof.formats.configurations.configuration import Configuration, Flag, Format, items_at
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.formats.configurations.kubeadm import extra_args
from numaproof.inputs.documents import Document, MergedDocument, PathTuple, apply_patch, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator


_PRODUCT = "a kind cluster"
_PATCHES = ("kubeadmConfigPatches",)


def _patches(document: Document, at: PathTuple, text: str) -> Iterator[Document]:
    for place, patch in items_at(document, (*at, *_PATCHES)):
        if not isinstance(patch, str):
            raise document.error(place, "must be a text", "write the patch after a |")
        yield from inner_documents(document, place, patch, text)


def _read(document: Document, text: str) -> Iterator[Configuration]:
    cluster = [*_patches(document, (), text)]
    nodes = items_at(document, ("nodes",))
    roles = [str(value_at(node, ("role",)) or "control-plane") for _, node in nodes]
    own = [[*_patches(document, at, text)] for at, _ in nodes]
    if not nodes:
        roles, own = ["control-plane"], [[]]
    first = roles.index("control-plane") if "control-plane" in roles else 0
    fields: Document = MergedDocument(document, {})
    gates = document.data.get("featureGates")
    if isinstance(gates, dict):
        fields = MergedDocument(document, {"featureGates": document.below(("featureGates",))})
    for patch in (*cluster, *own[first]):
        if patch.data.get("kind") == plain.KIND:
            fields = apply_patch(fields, patch)
    base = Configuration(_PRODUCT, "kubeadmConfigPatches", fields, adds_defaults="kind and kubeadm")
    base = _left_out(document, base)
    for number, role in enumerate(roles):
        before = roles[:number].count(role)
        name = f"{role}{before + 1}" if before else role
        kind = "InitConfiguration" if number == first else "JoinConfiguration"
        flags: dict[str, Flag] = {}
        found = base
        for patch in (*cluster, *own[number]):
            if patch.data.get("kind") == kind:
                flags |= {flag.name: flag for flag in extra_args(patch)}
        for patch in own[number] if number != first else ():
            if patch.data.get("kind") == plain.KIND:
                file, line = patch.locate()
                where = f"{file}:{line}"
                note = f"{where}: left out a patch of {name}: nodes that join the cluster get the"
                note += " KubeletConfiguration of the first control-plane node"
                found = found._replace(notes=(*found.notes, note))
        yield found._replace(name=name, flags=tuple(flags.values()))


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
