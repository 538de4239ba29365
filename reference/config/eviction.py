"""Hard eviction thresholds: the signals and the valid amounts.

(Kubernetes documentation, "Node-pressure Eviction: Eviction signals" and "Eviction thresholds".)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang.numbers import NumeralError, float32, single
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: Mapping[str, str] = {
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}

_MEMORY = "memory.available"
SIGNALS = frozenset(
    {
        _MEMORY,
        "allocatableMemory.available",
        "containerfs.available",
        "containerfs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
        "nodefs.available",
        "nodefs.inodesFree",
        "pid.available",
    }
)
_NO_THRESHOLDS = ("0%", "100%")
"""Percentages that mean no threshold, but only if written exactly like this."""

_NOT_A_NUMBER = -(1 << 63)
"""The result of converting NaN to an integer on 64-bit x86 processors."""


class ThresholdError(ValueError):
    """A threshold is invalid; the text is the kubelet's."""


def hard_thresholds(decoded_config: Mapping[str, Any]) -> Mapping[str, str]:
    """Returns the hard thresholds of a decoded configuration by signal.

    The defaults apply if it sets none, or if it asks for them to be merged.

    Requirements: MEM-RESERVE-006.
    """
    thresholds: Mapping[str, str] | None = decoded_config["evictionHard"]
    if thresholds is None or decoded_config["mergeDefaultEvictionSettings"]:
        return {**DEFAULTS, **(thresholds or {})}
    return thresholds


def check(thresholds: Mapping[str, str]) -> None:
    """Checks all thresholds in alphabetical order of signals (the kubelet's order is random).

    Raises:
        ThresholdError: a signal is unknown, or its amount or percentage is invalid.

    Requirements: MEM-CONFIG-011.
    """
    for signal, text in sorted(thresholds.items()):
        if signal not in SIGNALS:
            raise ThresholdError(f"unsupported eviction signal {signal}")
        if text.endswith("%"):
            _check_share(signal, text)
        else:
            _check_amount(signal, text)


def of_memory(thresholds: Mapping[str, str], capacity: int) -> str | None:
    """Returns the memory threshold as a quantity, or None if there is none.

    Percentages are relative to `capacity`, which is in bytes. `thresholds` must already have been
    checked.

    Requirements: MEM-RESERVE-007.
    """
    text = thresholds.get(_MEMORY)
    if text is None or text in _NO_THRESHOLDS:
        return None
    if not text.endswith("%"):
        return text
    share = _share(text)
    size = _NOT_A_NUMBER if math.isnan(share) else int(capacity * share)
    return quantity.canonical(size, "binary") if size else None


def _check_share(signal: str, text: str) -> None:
    if text in _NO_THRESHOLDS:
        return
    share = _share(text)
    for wrong, limit in ((share < 0, ">= 0%"), (share > 1, "<= 100%")):
        if wrong:
            raise ThresholdError(f"eviction percentage threshold {signal} must be {limit}: {text}")


def _check_amount(signal: str, text: str) -> None:
    try:
        amount = quantity.parse(text)
    except quantity.QuantityError as error:
        raise ThresholdError(str(error)) from None
    if amount <= 0:
        written = quantity.canonical(amount, quantity.style(text))
        raise ThresholdError(f"eviction threshold {signal} must be positive: {written}")


def _share(text: str) -> float:
    """Converts a percentage to a fraction in single precision, as the kubelet does."""
    try:
        return single(float32(text.rstrip("%")) / 100)
    except NumeralError as error:
        raise ThresholdError(str(error)) from None
