"""Memory and devices of a NUMA node as SVG: memory as bars, devices as tiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from markupsafe import escape

from numaproof.reports.drawing_swatch import HEIGHT, LETTER, device_ground, memory_ground, swatch

if TYPE_CHECKING:
    from numaproof.reports.drawing_stock import DrawnDevice, DrawnMemory, Stock
    from numaproof.reports.ownership import Ownership

_LIMIT = 330
_BAR, _STEP, _GAP = 8, 28, 4


@dataclass(frozen=True, slots=True)
class Shelf:
    """The drawn stock: its size in CSS pixels, and its elements, starting at 0, 0."""

    width: int = 0
    height: int = 0
    drawn: str = ""

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.drawn)


def shelf(stock: Stock, held: Ownership) -> Shelf:
    """Draws memory and devices one below the other; `held` determines the look of owners."""
    if not stock:
        return Shelf()
    parts: list[str] = []
    y = 0
    texts = [_text_width(_memory_text(one)) for one in stock.memory]
    width = max(_LIMIT, *texts) if texts else 0
    rows = {name: _rows(devices, held) for name, devices in stock.by_resource().items()}
    for name, placed in rows.items():
        width = max(width, _text_width(name), *(x + wide for x, _, wide, _ in placed))
    for memory in stock.memory:
        parts.append(_text(_memory_text(memory), 0, y + 11))
        parts.append(_bar(memory, y + 16, width))
        y += _STEP
    for name, placed in rows.items():
        parts.append(_text(name, 0, y + 11))
        parts += (
            _tile(device, held, (x, y + 16 + row * (HEIGHT + 3)), wide)
            for x, row, wide, device in placed
        )
        y += 16 + (max(row for _, row, _, _ in placed) + 1) * (HEIGHT + 3) + _GAP
    return Shelf(width, y, "".join(parts))


def _memory_text(memory: DrawnMemory) -> str:
    return f"{memory.kind}: {memory.text}"


def _text_width(text: str) -> int:
    return ceil(len(text) * LETTER * 0.86)


def _text(text: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y}">{escape(text)}</text>'


def _bar(memory: DrawnMemory, y: int, width: int) -> str:
    reserved, allocated = (width * share for share in memory.shares)
    return (
        f"<g><title>{escape(_memory_text(memory))}</title>"
        f"{memory_ground('free', 0, y, width, _BAR)}"
        f"{memory_ground('reserved', 0, y, reserved, _BAR)}"
        f"{memory_ground('allocated', reserved, y, allocated, _BAR)}</g>"
    )


def _label(device: DrawnDevice, held: Ownership) -> str:
    holder = held.named.get(device.owner)
    if holder is not None:
        return f"{device.label} {holder.symbol}"
    return device.label if device.healthy else f"{device.label} unhealthy"


def _rows(devices: list[DrawnDevice], held: Ownership) -> list[tuple[int, int, int, DrawnDevice]]:
    """The devices side by side in rows: position, row and width of each."""
    placed, x, row = [], 0, 0
    for device in devices:
        wide = _text_width(_label(device, held)) + 12
        if x and x + wide > _LIMIT:
            x, row = 0, row + 1
        placed.append((x, row, wide, device))
        x += wide + _GAP
    return placed


def _tile(device: DrawnDevice, held: Ownership, place: tuple[int, int], wide: int) -> str:
    x, y = place
    holder = held.named.get(device.owner)
    ground = swatch(holder, x, y, wide) if holder else device_ground(device.healthy, x, y, wide)
    dark = ' fill="#14181d"' if holder else ""
    whose = holder.name if holder else "free" if device.healthy else "unhealthy"
    near = f"near node {', '.join(map(str, device.nodes))}" if device.nodes else "near no node"
    title = f"{device.resource} {device.label}, {near}: {whose}"
    return (
        f"<g><title>{escape(title)}</title>{ground}"
        f'<text x="{x + wide // 2}" y="{y + 13}" text-anchor="middle"{dark}>'
        f"{escape(_label(device, held))}</text></g>"
    )
