"""The fields of a configuration, decoded with the kubelet's words for values of the wrong type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import decoding, durations
from numaproof.reference.golang.syntax import Number
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

MemoryReservations = tuple[tuple[int, "Mapping[str, str]"], ...]
"""Node and quantities by memory type, entry by entry."""


class ConfigError(Exception):
    """The kubelet does not start with this configuration; the text is the kubelet's."""


def decoded(given: Mapping[str, Any], name: str, kind: decoding.Kind) -> Any:
    """The value of a field as Go's JSON decodes it; what is absent is as ``null``.

    Raises:
        ConfigError: the value is of another kind.

    Requirements: MEM-CONFIG-002.
    """
    whole = decoding.Fields("v1beta1.KubeletConfiguration", {name: kind})
    found, error = decoding.convert({name: given.get(name)}, whole)
    if error:
        raise ConfigError(f"failed to decode: {error}")
    return found[name]


def text(given: Mapping[str, Any], name: str, default: str) -> str:
    """A string; the default if it is absent or empty.

    Raises:
        ConfigError: the value is of another type.
    """
    return decoded(given, name, decoding.Text()) or default


_TEXTS = decoding.Keyed(decoding.Text(), "map[string]string")
_GATES = decoding.Keyed(decoding.Truth(), "map[string]bool")


def texts(given: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """A map of strings; empty if it is absent.

    Raises:
        ConfigError: the value or an entry of it is of another type.
    """
    return decoded(given, name, _TEXTS) or {}


def gates(given: Mapping[str, Any]) -> Mapping[str, bool]:
    """The feature gates that are set.

    Raises:
        ConfigError: the value or an entry of it is of another type.
    """
    wanted = decoded(given, "featureGates", _GATES) or {}
    return {name: bool(on) for name, on in wanted.items()}


def _quantity(amount: Any) -> str:
    written = amount.text if isinstance(amount, Number) else str(amount)
    if amount is None:
        return "0"
    quantity.parse(written)
    return written


_RESERVATIONS = decoding.Listed(
    decoding.Fields(
        "v1beta1.MemoryReservation",
        {
            "numaNode": decoding.Signed("int32", bits=32),
            "limits": decoding.Keyed(
                decoding.Own("resource.Quantity", _quantity), "v1.ResourceList"
            ),
        },
    ),
    "[]v1beta1.MemoryReservation",
)


def memory_reservations(given: Mapping[str, Any]) -> MemoryReservations:
    """The entries of ``reservedMemory``.

    Raises:
        ConfigError: a value is of the wrong type, or an amount is not a quantity.

    Requirements: MEM-CONFIG-009.
    """
    entries = decoded(given, "reservedMemory", _RESERVATIONS) or ()
    return tuple((entry["numaNode"], entry["limits"] or {}) for entry in entries)


def boolean(given: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """A truth value; the default if it is absent.

    Raises:
        ConfigError: the value is of another type.
    """
    found: bool | None = decoded(given, name, decoding.Truth())
    return default if found is None else found


def _duration(value: Any) -> int:
    if not isinstance(value, str | None):
        raise TypeError
    return durations.nanoseconds(value or "")


def duration(given: Mapping[str, Any], name: str, default: str) -> str:
    """A duration as Go writes it; the default if it is absent or zero.

    Raises:
        ConfigError: it is neither.

    Requirements: CPU-CONFIG-014, CPU-RECONCILE-003.
    """
    if name not in given:
        return default
    nanoseconds = decoded(given, name, decoding.Own("string", _duration))
    return durations.shown(nanoseconds) if nanoseconds else default
