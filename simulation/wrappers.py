"""Files that hold a kubelet's configuration in a form of their own.

What is simple to read is read; the others are refused by their names, with the way to get the
configuration out of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.simulation import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.inputs.documents import Document, DocumentError, PathTuple

API_VERSION = "kubelet.config.k8s.io/v1beta1"

_OPENSHIFT_GROUP = "machineconfiguration.openshift.io/"
_OPENSHIFT = "an OpenShift KubeletConfig"
_IN_OPENSHIFT = ("spec", "kubeletConfig")
_OPENSHIFT_FIELDS: Mapping[PathTuple, tuple[str, ...]] = {
    (): ("apiVersion", "kind", "metadata", "spec", "status"),
    ("metadata",): tuple(fields.table()["ObjectMeta"]),
    ("spec",): (
        "autoSizingReserved",
        "kubeletConfig",
        "logLevel",
        "machineConfigPoolSelector",
        "tlsSecurityProfile",
    ),
}

_IN_CONFIGZ = ("kubeletconfig",)

FROM_NODE = "kubectl get --raw /api/v1/nodes/NODE/proxy/configz"
"""Prints the configuration in force on a node, which is read too."""


_K3S = (
    "a k3s or RKE2 configuration, with flags of the kubelet",
    "write the flags as a KubeletConfiguration",
)
_GKE = ("a GKE node system configuration", "write its fields as a KubeletConfiguration")
_OTHERS = {"kubelet-arg": _K3S, "kubelet-arg+": _K3S, "kubeletConfig": _GKE, "linuxConfig": _GKE}
"""Fields by which other products' files are known, with what they are and what to do."""


def unwrapped(document: Document) -> tuple[Document, str, tuple[DocumentError, ...]]:
    """The KubeletConfiguration of a document.

    Returns:
        The document of its fields, a note on where they were (empty: they are the document), and
        errors about unknown fields around them.

    Raises:
        DocumentError: the document is something else; the message says what, and what to do.
    """
    content = document.data
    _refuse_others(document)
    version, kind = content.get("apiVersion"), content.get("kind")
    if str(version).startswith(_OPENSHIFT_GROUP) and kind == "KubeletConfig":
        return _openshift(document)
    if content.keys() == {*_IN_CONFIGZ} and isinstance(content[_IN_CONFIGZ[0]], dict):
        note = (
            f"{document.file}:{document.line(_IN_CONFIGZ)}: read kubeletconfig, as configz has it"
        )
        return document.below(_IN_CONFIGZ), note, ()
    if kind is None or version is None:
        known = {"kind", "apiVersion", *fields.table()[fields.CONFIGURATION]} & content.keys()
        misspelt = [
            (name, wanted)
            for name in content
            for wanted in ("apiVersion", "kind")
            if wanted not in content and fields.is_slip(name, wanted)
        ]
        if misspelt:
            (name, wanted), *_ = misspelt
            raise document.error((name,), "unknown field", f"did you mean {wanted}?")
        if not known:
            raise document.error(
                (), "not a KubeletConfiguration: it has none of the fields of one", _fix()
            )
    if kind not in (None, fields.CONFIGURATION):
        raise document.error(("kind",), f"expected {fields.CONFIGURATION}, got {kind!r}", _fix())
    for key, wanted in (("apiVersion", API_VERSION), ("kind", fields.CONFIGURATION)):
        if content.get(key) != wanted:
            message = f"expected {wanted}, got {content.get(key)!r}"
            raise document.error((key,), message, f"set {key}: {wanted}")
    return document, "", ()


def _fix() -> str:
    return f"use the file that the kubelet reads with --config, or what `{FROM_NODE}` prints"


def _openshift(document: Document) -> tuple[Document, str, tuple[DocumentError, ...]]:
    misspelt = tuple(
        document.error((*path, name), "unknown field", fields.suggestion(name, known))
        for path, known in _OPENSHIFT_FIELDS.items()
        for name in _names(_at(document.data, path))
        if name not in known
    )
    if not isinstance(_at(document.data, _IN_OPENSHIFT), dict):
        if misspelt:
            raise misspelt[0]
        message = f"{_OPENSHIFT} without a configuration"
        raise document.error(_IN_OPENSHIFT, message, "add spec.kubeletConfig")
    note = (
        f"{document.file}:{document.line(_IN_OPENSHIFT)}: read spec.kubeletConfig of {_OPENSHIFT},"
        " without the defaults that OpenShift adds"
    )
    return document.below(_IN_OPENSHIFT), note, misspelt


def _refuse_others(document: Document) -> None:
    """Refuses what is another product's file, whatever its apiVersion and kind say."""
    content = document.data
    if content.get("kind") == fields.CONFIGURATION and _at(content, _IN_OPENSHIFT) is not None:
        raise document.error(
            ("spec",),
            f"{_OPENSHIFT} under another kind: no kubelet reads spec.kubeletConfig",
            f"set apiVersion: {_OPENSHIFT_GROUP}v1 and kind: KubeletConfig again",
        )
    is_openshift = str(content.get("apiVersion")).startswith(_OPENSHIFT_GROUP)
    for name, (what, fix) in _OTHERS.items():
        if name in content and not is_openshift:
            raise document.error((name,), what, f"{fix}, or use what `{FROM_NODE}` prints")
    if _at(content, ("machine", "kubelet")) is not None:
        raise document.error(
            ("machine",),
            "a Talos machine configuration",
            "use the file that Talos makes of it: talosctl read /etc/kubernetes/kubelet.yaml",
        )


def _names(value: Any) -> Iterable[str]:
    """The fields of a mapping; none of anything else."""
    return value if isinstance(value, dict) else ()


def _at(value: Any, path: PathTuple) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
