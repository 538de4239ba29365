"""The configuration fields that the resource managers use, decoded as Go decodes JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import decoding, durations
from numaproof.reference.golang.syntax import Number
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

MemoryReservations = tuple[tuple[int, "Mapping[str, str]"], ...]
"""Pairs of a node and quantities by memory type, in the order of the entries."""


class ConfigError(Exception):
    """The kubelet refuses to start with this configuration; the text is the kubelet's."""


def _duration(value: Any) -> int:
    if not isinstance(value, str | None):
        raise TypeError
    return durations.nanoseconds(value or "")


def _quantity(amount: Any) -> str:
    written = amount.text if isinstance(amount, Number) else str(amount)
    if amount is None:
        return "0"
    quantity.parse(written)
    return written


_TEXTS = decoding.Map(decoding.Text(), "map[string]string")

_QUANTITIES = decoding.Map(decoding.Custom("resource.Quantity", _quantity), "v1.ResourceList")

_RESERVATION = decoding.Fields(
    "v1beta1.MemoryReservation",
    {"numaNode": decoding.Signed("int32", bits=32), "limits": _QUANTITIES},
)

DECODED: Mapping[str, decoding.Kind] = {
    "cpuManagerPolicy": decoding.Text(),
    "memoryManagerPolicy": decoding.Text(),
    "topologyManagerPolicy": decoding.Text(),
    "topologyManagerScope": decoding.Text(),
    "reservedSystemCPUs": decoding.Text(),
    "cpuManagerPolicyOptions": _TEXTS,
    "topologyManagerPolicyOptions": _TEXTS,
    "kubeReserved": _TEXTS,
    "systemReserved": _TEXTS,
    "evictionHard": _TEXTS,
    "mergeDefaultEvictionSettings": decoding.Boolean(),
    "reservedMemory": decoding.Array(_RESERVATION, "[]v1beta1.MemoryReservation"),
    "cpuManagerReconcilePeriod": decoding.Custom("string", _duration),
    "cpuCFSQuota": decoding.Boolean(),
    "featureGates": decoding.Map(decoding.Boolean(), "map[string]bool"),
    "maxPods": decoding.Signed("int32", bits=32),
    "podsPerCore": decoding.Signed("int32", bits=32),
}
"""The type of each field."""

_CONFIGURATION = decoding.Fields("v1beta1.KubeletConfiguration", DECODED)


def decode(kubelet_config: Mapping[str, Any]) -> dict[str, Any]:
    """Decodes all fields in `DECODED`; missing strings are empty, other missing values are None.

    Raises:
        ConfigError: a value has the wrong type; the error reports the first one in the order of the
            fields.

    Requirements: CPU-CONFIG-014, CPU-RECONCILE-003, MEM-CONFIG-002.
    """
    ours = {name: value for name, value in kubelet_config.items() if name in DECODED}
    found, error = decoding.convert(ours, _CONFIGURATION)
    if error:
        raise ConfigError(f"failed to decode: {error}")
    decoded: dict[str, Any] = found
    return decoded


def memory_reservations(decoded_config: Mapping[str, Any]) -> MemoryReservations:
    """Returns the entries of ``reservedMemory``; the default node is 0.

    Requirements: MEM-CONFIG-009.
    """
    entries = decoded_config["reservedMemory"] or ()
    return tuple((entry["numaNode"], entry["limits"] or {}) for entry in entries)
