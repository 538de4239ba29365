"""OpenShift's KubeletConfig.

(OpenShift documentation, "Creating a KubeletConfig CR to edit kubelet parameters".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations.configuration import Configuration, Format, name_of, nothing
from numaproof.inputs.documents import Document, PathTuple, value_at
from numaproof.inputs.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


GROUP = "machineconfiguration.openshift.io"
_PRODUCT = "an OpenShift KubeletConfig"
_FIELDS = ("spec", "kubeletConfig")
_KNOWN: Mapping[PathTuple, tuple[str, ...]] = {
    (): ("apiVersion", "kind", "metadata", "spec", "status"),
    ("metadata",): (
        *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp"),
        *("finalizers", "generateName", "generation", "labels", "managedFields", "name"),
        *("namespace", "ownerReferences", "resourceVersion", "selfLink", "uid"),
    ),
    ("spec",): (
        "autoSizingReserved",
        "kubeletConfig",
        "logLevel",
        "machineConfigPoolSelector",
        "tlsSecurityProfile",
    ),
}
"""The fields around the configuration, by the path of their mapping."""


def _read(document: Document, _: str) -> Iterator[Configuration]:
    misspelt = tuple(
        document.error((*path, name), "unknown field", suggestion(name, known))
        for path, known in _KNOWN.items()
        for name in _names(value_at(document.data, path))
        if name not in known
    )
    if not isinstance(value_at(document.data, _FIELDS), dict):
        if misspelt:
            raise misspelt[0]
        raise nothing(document, _PRODUCT, _FIELDS)
    found = Configuration(
        _PRODUCT,
        "spec.kubeletConfig",
        document.below(_FIELDS),
        name=name_of(document),
        errors=misspelt,
        adds_defaults="OpenShift",
    )
    if value_at(document.data, ("spec", "autoSizingReserved")):
        text = "left out autoSizingReserved: each node computes its systemReserved when it boots"
        found = found.note((), text)
    yield found


def _names(value: Any) -> Iterable[str]:
    return value if isinstance(value, dict) else ()


FORMAT = Format(_PRODUCT, _read, (_FIELDS,), GROUP, ("KubeletConfig",))
