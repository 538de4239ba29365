"""The fields of a configuration, decoded with the kubelet's words for values of the wrong type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import durations
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

MemoryReservations = tuple[tuple[int, "Mapping[str, str]"], ...]
"""Node and quantities by memory type, entry by entry."""


class ConfigError(Exception):
    """The kubelet does not start with this configuration; the text is the kubelet's."""


_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object"}


def wrong_type(name: str, value: Any, wanted: str, shown: str = "") -> ConfigError:
    """The error for a field whose `value` is not of the Go type `wanted`.

    `shown` is how the error calls the value, if not by its type.

    Requirements: MEM-CONFIG-002.
    """
    found = shown or _GO_NAMES.get(type(value), "array")
    struct = "MemoryReservation" if "." in name else "KubeletConfiguration"
    return ConfigError(
        f"failed to decode: json: cannot unmarshal {found} into Go struct field "
        f"{struct}.{name} of type {wanted}"
    )


def text(given: Mapping[str, Any], name: str, default: str) -> str:
    """A string; the default if it is absent or empty.

    Raises:
        ConfigError: the value is of another type.
    """
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise wrong_type(name, value, "string")
    return value or default


def texts(given: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """A map of strings; empty if it is absent.

    Raises:
        ConfigError: the value or an entry of it is of another type.
    """
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong_type(name, value, "map[string]string")
    for entry in value.values():
        if not isinstance(entry, str | None):
            raise wrong_type(name, entry, "string")
    return {key: entry or "" for key, entry in value.items()}


def memory_reservations(given: Mapping[str, Any]) -> MemoryReservations:
    """The entries of ``reservedMemory``.

    Raises:
        ConfigError: a value is of the wrong type, or an amount is not a quantity.

    Requirements: MEM-CONFIG-009.
    """
    entries = given.get("reservedMemory")
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise wrong_type("reservedMemory", entries, "[]v1beta1.MemoryReservation")
    return tuple(_memory_reservation(entry) for entry in entries)


def _memory_reservation(entry: Any) -> tuple[int, Mapping[str, str]]:
    if not isinstance(entry, dict | None):
        raise wrong_type("reservedMemory", entry, "v1beta1.MemoryReservation")
    place = "reservedMemory.numaNode"
    node = (entry or {}).get("numaNode", 0)
    node = 0 if node is None else node
    if isinstance(node, bool) or not isinstance(node, int | float):
        raise wrong_type(place, node, "int32")
    if isinstance(node, float) or not -(1 << 31) <= node < 1 << 31:
        raise wrong_type(place, node, "int32", f"number {node}")
    limits = (entry or {}).get("limits")
    if not isinstance(limits, dict | None):
        raise wrong_type("reservedMemory.limits", limits, "v1.ResourceList")
    amounts = {
        kind: "0" if amount is None else str(amount) for kind, amount in (limits or {}).items()
    }
    for amount in amounts.values():
        try:
            quantity.parse(amount)
        except quantity.QuantityError as error:
            raise ConfigError(f"failed to decode: {error}") from None
    return node, amounts


def boolean(given: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """A truth value; the default if it is absent.

    Raises:
        ConfigError: the value is of another type.
    """
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong_type(name, value, "bool")
    return value


def duration(given: Mapping[str, Any], name: str, default: str) -> str:
    """A duration as Go writes it; the default if it is absent or zero.

    Raises:
        ConfigError: it is neither.

    Requirements: CPU-CONFIG-014, CPU-RECONCILE-003.
    """
    if name not in given:
        return default
    value = "" if given[name] is None else given[name]
    if not isinstance(value, str):
        raise wrong_type(name, value, "string")
    try:
        nanoseconds = durations.nanoseconds(value)
    except durations.DurationError as error:
        raise ConfigError(f"failed to decode: {error}") from None
    return durations.shown(nanoseconds) if nanoseconds else default
