"""OpenShift's PerformanceProfile, from which the Node Tuning Operator derives a KubeletConfig.

(OpenShift documentation, "Low latency tuning"; cluster-node-tuning-operator, package
``kubeletconfig``.)
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations.configuration import (
    Configuration,
    Format,
    mapping_below,
    scalar,
)
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.inputs.documents import Document, MergedDocument, PathTuple, apply_patch, value_at
from numaproof.inputs.names import suggestion
from numaproof.protocol.sets import CPUSet
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_PRODUCT = "a PerformanceProfile"
_ANNOTATIONS = ("metadata", "annotations")
_SNIPPET = (*_ANNOTATIONS, "kubeletconfig.experimental")
_RESERVED = ("spec", "cpu", "reserved")
_POLICY = ("spec", "numa", "topologyPolicy")
_PINNING = ("restricted", "single-numa-node")
_UNLESS_SET: Mapping[str, Mapping[str, str]] = {
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "imagefs.available": "15%",
        "nodefs.inodesFree": "5%",
    },
    "kubeReserved": {"memory": "500Mi"},
    "systemReserved": {"memory": "500Mi"},
}
"""What the operator adds to a snippet."""


def _read(document: Document, text: str) -> Iterator[Configuration]:
    _require_texts(document)
    snippet = value_at(document.data, _SNIPPET)
    base: Document = MergedDocument(document, {})
    if isinstance(snippet, str):
        for inner in inner_documents(document, _SNIPPET, snippet, text):
            base = inner
    derived = apply_patch(scalar(document, _UNLESS_SET), base)
    derived = apply_patch(derived, MergedDocument(document, _set_by_profile(document, derived)))
    name = value_at(document.data, ("metadata", "name"))
    found = Configuration(
        _PRODUCT,
        "what the Node Tuning Operator derives from spec.cpu and spec.numa",
        derived,
        name=str(name or ""),
        adds_defaults="OpenShift",
    )
    yield found.note(
        (), f"for its result, use the output of `oc get kubeletconfig performance-{name} -o yaml`"
    )


_CPU_SETS = ("isolated", "reserved", "offlined", "shared")
_CPU_FIELDS = (*_CPU_SETS, "balanceIsolated")


def _require_texts(document: Document) -> None:
    """Checks the fields that the operator reads; YAML splits unquoted lists of CPUs in braces.

    Raises:
        DocumentError: a field has the wrong type, is unknown or is missing.
    """
    cpu = mapping_below(document, ("spec", "cpu")).data
    for name in cpu:
        if name not in _CPU_FIELDS:
            is_number = re.fullmatch("[0-9-]+", name)
            fix = 'quote lists of CPUs: "0,24"' if is_number else suggestion(name, _CPU_FIELDS)
            raise document.error(("spec", "cpu", name), "unknown field", fix)
    if cpu.get("reserved") is None:
        raise document.error(("spec", "cpu"), "reserved is missing", 'add reserved: "0"')
    for path in (*(("spec", "cpu", name) for name in _CPU_SETS), _POLICY):
        value = value_at(document.data, path)
        if not isinstance(value, str | None):
            raise document.error(path, "must be a string", f'write {path[-1]}: "{value}"')
    _require_disjoint(document)


def _require_disjoint(document: Document) -> None:
    """Checks the sets of CPUs as the operator's webhook does.

    Raises:
        DocumentError: one is not a list, or two have CPUs in common.
    """
    sets = {name: _cpus(document, name) for name in _CPU_SETS}
    for (name, cpus), (other, others) in combinations(sets.items(), 2):
        if both := cpus & others:
            message = f"{other} and {name} CPUs overlap: {both}; the operator refuses the profile"
            raise document.error(("spec", "cpu", other), message, "put each CPU into one of them")


def _cpus(document: Document, name: str) -> CPUSet:
    """Returns a set of CPUs, which is empty if the profile has none of the name.

    Raises:
        DocumentError: it is not a list of CPUs.
    """
    path = ("spec", "cpu", name)
    try:
        return CPUSet.parse(value_at(document.data, path) or "")
    except ValueError:
        raise document.error(path, "not a list of CPUs", "write 0-1,8") from None


def _set_by_profile(document: Document, fields: Document) -> dict[str, Document]:
    """Returns the values that the operator sets whatever a snippet says."""

    def place(path: PathTuple, value: Any) -> Document:
        file, line = document.locate(path)
        return Document(file, (line - 1, {}), value)

    policy = value_at(document.data, _POLICY) or "best-effort"
    found = {
        "cpuManagerPolicy": place(("spec", "cpu"), "static"),
        "cpuManagerReconcilePeriod": place(("spec", "cpu"), "5s"),
        "topologyManagerPolicy": place(_POLICY, policy),
    }
    reserved = value_at(document.data, _RESERVED)
    found["reservedSystemCPUs"] = place(_RESERVED, _with_shared(document, reserved))
    if policy in _PINNING:
        found["memoryManagerPolicy"] = place(_POLICY, "Static")
        if fields.data.get("reservedMemory") is None:
            entry = {"numaNode": 0, "limits": {"memory": _reserved_memory(document, fields.data)}}
            found["reservedMemory"] = place(_POLICY, [entry])
    options = dict(mapping_below(fields, ("cpuManagerPolicyOptions",)).data)
    if policy == "single-numa-node":
        options.setdefault("full-pcpus-only", "true")
    aligned = value_at(
        document.data, (*_ANNOTATIONS, "kubeletconfig.prefer-align-cpus-by-uncorecache")
    )
    if aligned in ("true", "false"):
        options["prefer-align-cpus-by-uncorecache"] = aligned
    if options:
        found["cpuManagerPolicyOptions"] = place(_POLICY, options)
    return found


def _with_shared(document: Document, reserved: str) -> str:
    """Returns the reserved CPUs, with the shared ones if the profile mixes CPUs."""
    shared = value_at(document.data, ("spec", "cpu", "shared"))
    mixes = value_at(document.data, ("spec", "workloadHints", "mixedCpus"))
    if not mixes or not isinstance(shared, str):
        return reserved
    return str(_cpus(document, "reserved") | _cpus(document, "shared"))


def _reserved_memory(document: Document, fields: Mapping[str, Any]) -> str:
    """Returns the memory to reserve on node 0: what the kubelet reserves altogether, in bytes."""
    amounts = (
        value_at(fields, ("kubeReserved", "memory")),
        value_at(fields, ("systemReserved", "memory")),
        value_at(fields, ("evictionHard", "memory.available")),
    )
    try:
        return str(sum(quantity.value(str(amount)) for amount in amounts))
    except quantity.QuantityError as error:
        raise document.error(_SNIPPET, str(error), "use a value such as 500Mi") from None


FORMAT = Format(
    _PRODUCT,
    _read,
    (("spec", "cpu", "isolated"),),
    "performance.openshift.io",
    ("PerformanceProfile",),
)
