"""Amounts of resources in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.inputs.plurals import numbered, plural
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable

CPU = "cpu"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_MOST_DIGITS = 4


def is_memory(resource: str) -> bool:
    """Whether amounts of the resource are bytes."""
    return resource == "memory" or resource.startswith("hugepages-")


def amount(resource: str, count: int) -> str:
    """``4 CPUs``, ``1.5 GiB of memory``, ``2 vendor.example/nic``."""
    if resource == CPU:
        return plural(count, "CPU")
    return f"{size(count)} of {resource}" if is_memory(resource) else f"{count} {resource}"


def amounts(asked: Iterable[tuple[str, int]]) -> str:
    """Several amounts, separated by commas."""
    return ", ".join(amount(resource, count) for resource, count in asked)


def free_of(resource: str, free: int, asked: int) -> str:
    """``3 CPUs free, 4 needed``, or ``5 CPUs free`` if that is enough.

    Sizes that are close are written with as many digits as it takes to distinguish them.
    """
    if free >= asked:
        return f"{amount(resource, free)} free"
    if not is_memory(resource):
        return f"{amount(resource, free)} free, {asked} needed"
    for digits in range(1, _MOST_DIGITS + 1):
        have, wanted = size(free, digits), size(asked, digits)
        if have != wanted:
            return f"{have} of {resource} free, {wanted} needed"
    return f"{free} B of {resource} free, {asked} B needed"


def size(count: int, digits: int = 1) -> str:
    """Bytes in the largest binary unit, with at most `digits` digits after the point."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - the step between units
        value, unit = value / 1024, unit + 1
    # Rounded down, so that no more is reported as free than there is.
    factor = 10**digits
    text = f"{int(value * factor) / factor:.{digits}f}".rstrip("0").removesuffix(".")
    return f"{text} {_UNITS[unit]}"


def nodes_text(nodes: NUMASet) -> str:
    """``node 0``, ``nodes 0-1``."""
    return numbered("node", nodes)


def masked(nodes: int) -> str:
    """Like `nodes_text`, for a bit mask."""
    return nodes_text(NUMASet.from_mask(nodes))
