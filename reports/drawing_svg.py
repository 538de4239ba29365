"""A machine as SVG: nested boxes, laid out in rows of even length.

All styling is in presentation attributes, so the drawing needs no style sheet (a page's content
security policy may forbid styles). Hatching is drawn line by line, because pattern ids would clash
between drawings on one page.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from numaproof.reports.layout import NOTHING, apart, arrange, cpus_of, of_node, ownership
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reports.layout import (
        DrawnCore,
        DrawnDevice,
        DrawnMemory,
        Group,
        Holder,
        Ownership,
        Stock,
    )


HEIGHT = 18
"""Height of a swatch, in CSS pixels."""

LETTER = 6.9
"""Upper bound of a letter's average width, in CSS pixels."""

# Distinguishable with every common kind of colour blindness; dark text is legible on all of them.
_COLOURS = (
    "#56b4e9",
    "#f0a531",
    "#5fc9a4",
    "#f0e442",
    "#d68fb8",
    "#e58a66",
    "#9fb2ff",
    "#c3bb96",
)
_SHARED, _RESERVED, _OFFLINE = "#e4e7eb", "#aeb6c0", "#f4f4f4"


def swatch(holder: Holder, x: int, y: int, width: int) -> str:
    """The background of a cell: a colour, with lines where colour alone is not enough."""
    wide, high = width - 1, HEIGHT - 1
    size = f'x="{x}" y="{y}" width="{wide}" height="{high}" rx="2"'
    match holder.kind:
        case "container":
            return f'<rect {size} fill="{_colour(holder.number)}"/>'
        case "reserved":
            return f'<rect {size} fill="{_RESERVED}"/>{_hatch(x, y, wide, high, "#5c6773")}'
        case "offline":
            cross = f'<path d="M{x} {y}l{wide} {high}m0 {-high}l{-wide} {high}" stroke="#bbb"/>'
            return f'<rect {size} fill="{_OFFLINE}" stroke="#999" stroke-dasharray="2 2"/>{cross}'
        case "several":
            first, second = ([_colour(n) for n in holder.parts] + [_SHARED, _SHARED])[:2]
            return (
                f'<rect {size} fill="{first}"/>'
                f'<path d="M{x + wide} {y}v{high}h{-wide}z" fill="{second}"/>'
                f'<rect {size} fill="none" stroke="#c1121f" stroke-width="2"/>'
            )
        case "nobody":
            return f'<rect {size} fill="none" stroke="#d9822b" stroke-dasharray="3 2"/>'
        case _:
            return f'<rect {size} fill="{_SHARED}"/>'


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _hatch(x: int, y: int, wide: int, high: int, colour: str) -> str:
    lines = "".join(f"M{x + start} {y + high}l{high} {-high}" for start in range(0, wide - high, 6))
    return f'<path d="{lines}" stroke="{colour}" stroke-opacity=".55"/>'


def device_ground(healthy: bool, x: int, y: int, width: int) -> str:  # noqa: FBT001 - a fact
    """The background of a device without an owner."""
    dash = "" if healthy else ' stroke-dasharray="3 2"'
    return (
        f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{width - 2}" height="{HEIGHT - 2}" rx="2" '
        f'fill="none" stroke="currentColor" stroke-opacity=".5"{dash}/>'
    )


def memory_ground(share: str, x: float, y: float, width: float, height: float) -> str:
    """A segment of a memory bar: ``reserved``, ``allocated`` or ``free``; nothing if empty."""
    if not width:
        return ""
    fill = {"reserved": "#5c6773", "allocated": "#2f81d6"}.get(share)
    look = f'fill="{fill}"' if fill else 'fill="currentColor" fill-opacity=".12"'
    # However small, a segment that exists must be visible.
    return f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1.5):.1f}" height="{height}" {look}/>'


_LIMIT = 330
_BAR, _STEP, _SHELF_GAP = 8, 28, 4


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
        y += 16 + (max(row for _, row, _, _ in placed) + 1) * (HEIGHT + 3) + _SHELF_GAP
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
        x += wide + _SHELF_GAP
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


WIDEST = 1040
"""Maximum width of a drawing, in CSS pixels."""

_GAP = 6
_PAD = 8
_LABEL = 16


@dataclass(frozen=True, slots=True)
class _Box:
    """A group with its size and the positions of its contents, relative to its corner."""

    group: Group
    width: int
    height: int
    shelf: Shelf
    boxes: tuple[tuple[int, int, _Box], ...] = ()
    cores: tuple[tuple[int, int, DrawnCore], ...] = ()


@dataclass(frozen=True, slots=True)
class _Grid:
    """The size of a thread's cell, set by the longest CPU number, and the nodes' stock."""

    cell: int
    stock: Stock
    held: Ownership

    def core_size(self, core: DrawnCore) -> tuple[int, int]:
        columns, rows = _shape(len(core.cpus))
        return columns * self.cell + 4, rows * HEIGHT + 4


@dataclass(frozen=True, slots=True)
class _Pen:
    """What is needed to draw an element, and the elements drawn so far."""

    grid: _Grid
    held: Ownership
    parts: list[str]


def draw_svg(
    machine: MachineInfo,
    owners: Iterable[Owner] = (),
    shared: str = "",
    *,
    stock: Stock = NOTHING,
) -> Markup:
    """The machine as an ``<svg>`` element, for a page or for a separate file.

    It needs no style sheet and takes the colour of lines and labels from the surrounding text.

    Args:
        machine: the machine to draw.
        owners: who owns which CPUs. The names ``reserved`` and ``offline`` mean the reservation
            and offline CPUs; every other name is a container.
        shared: the CPUs of the shared pool, in the Linux list format.
        stock: memory and devices; an owner may have devices but no CPUs.
    """
    held = ownership(cpus_of(machine), owners, shared)
    whole = arrange(machine, held.elsewhere)
    longest = len(str(max(held.holders, default=0)))
    grid = _Grid(10 + 7 * longest + (0 if not held.legend else 8), stock, held)
    box = _measure(whole, WIDEST, grid)
    other = shelf(apart(stock), held)
    below = box.height + (other.height + _GAP if other else 0)
    legend, legend_height = _legend(held, below + 4, max(box.width, 420))
    width = max(box.width, other.width, 420 if legend else 0)
    height = below + legend_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(whole.detail)}</title>"
    )
    pen = _Pen(grid, held, [opening])
    _emit(box, 0, 0, pen)
    pen.parts.append(_shelf(other, 0, box.height + _GAP))
    return Markup("".join([*pen.parts, *legend, "</svg>"]))  # noqa: S704  # all text is escaped


def _shape(threads: int) -> tuple[int, int]:
    """Columns and rows of a core's threads: one column up to SMT 2, two rows beyond."""
    rows = min(threads, 2)
    return ceil(threads / max(rows, 1)), rows


def _measure(group: Group, limit: int, grid: _Grid) -> _Box:
    bare = group.kind == "machine"
    pad, top = (0, 0) if bare else (_PAD, _LABEL + 6)
    inner = limit - 2 * pad
    boxes = [_measure(part, inner, grid) for part in group.groups]
    sizes = [(box.width, box.height) for box in boxes] or [
        grid.core_size(core) for core in group.cores
    ]
    # Nodes without CPUs are small, so they get separate rows after the others.
    full = sum(
        1 for part in group.groups if part.groups or (part.cores and part.kind != "elsewhere")
    )
    places, width, height = _flow(sizes[: full or None], inner, _GAP if boxes else 4)
    if full and boxes[full:]:
        more, wider, higher = _flow(sizes[full:], inner, _GAP)
        places += [(x, y + height + _GAP) for x, y in more]
        width, height = max(width, wider), height + _GAP + higher
    label = 0 if bare else ceil(len(_heading(group)) * LETTER)
    mine = shelf(of_node(grid.stock, group.node), grid.held)
    top += mine.height
    placed = [(x + pad, y + top) for x, y in places]
    return _Box(
        group,
        max(width, label, mine.width) + 2 * pad,
        height + top + (0 if bare else pad if sizes or mine else 0),
        mine,
        tuple((x, y, box) for (x, y), box in zip(placed, boxes, strict=False)),
        ()
        if boxes
        else tuple((x, y, core) for (x, y), core in zip(placed, group.cores, strict=True)),
    )


def _flow(
    sizes: Sequence[tuple[int, int]], limit: int, gap: int
) -> tuple[list[tuple[int, int]], int, int]:
    """Arranges sizes in rows of even length, no wider than `limit`.

    Returns:
        The position of each, and the total width and height.
    """
    if not sizes:
        return [], 0, 0
    widest = max(width for width, _ in sizes)
    fitting = max((limit + gap) // (widest + gap), 1)
    rows = ceil(len(sizes) / fitting)
    even = ceil(len(sizes) / rows)
    even = next((n for n in (8, 16, 32) if even <= n <= fitting and len(sizes) % n == 0), even)
    places, y, right = [], 0, 0
    for start in range(0, len(sizes), even):
        row = sizes[start : start + even]
        x = 0
        for width, _ in row:
            places.append((x, y))
            right = max(right, x + width)
            x += widest + gap
        y += max(height for _, height in row) + gap
    return places, right, y - gap


def _heading(group: Group) -> str:
    return " · ".join(part for part in (group.label, group.detail) if part)


def _emit(box: _Box, x: int, y: int, pen: _Pen) -> None:
    group = box.group
    if group.kind != "machine":
        opacity = {"socket": ".07", "node": ".05"}.get(group.kind, ".04")
        dash = ' stroke-dasharray="4 3"' if group.kind == "elsewhere" else ""
        note = f"<title>{escape(group.note)}</title>" if group.note else ""
        weight = "600" if group.kind in {"socket", "node"} else "400"
        pen.parts.append(
            f'<g>{note}<rect x="{x + 0.5}" y="{y + 0.5}" width="{box.width - 1}" '
            f'height="{box.height - 1}" rx="5" fill-opacity="{opacity}" '
            f'stroke="currentColor" stroke-opacity=".35"{dash}/>'
            f'<text x="{x + _PAD}" y="{y + _LABEL}" font-weight="{weight}">'
            f"{escape(_heading(group))}</text></g>"
        )
    pen.parts.append(_shelf(box.shelf, x + _PAD, y + _LABEL + 6))
    for dx, dy, inner in box.boxes:
        _emit(inner, x + dx, y + dy, pen)
    for dx, dy, core in box.cores:
        pen.parts.append(_core(core, x + dx, y + dy, pen))


def _shelf(mine: Shelf, x: int, y: int) -> str:
    return f'<g transform="translate({x} {y})">{mine.drawn}</g>' if mine else ""


def _core(core: DrawnCore, x: int, y: int, pen: _Pen) -> str:
    grid = pen.grid
    width, height = grid.core_size(core)
    columns, _ = _shape(len(core.cpus))
    frame = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="none" '
        f'stroke="currentColor" stroke-opacity=".45"/>'
    )
    cells = "".join(
        _thread(
            (core.core, cpu),
            pen.held.holders[cpu],
            (x + 2 + index % columns * grid.cell, y + 2 + index // columns * HEIGHT),
            grid.cell,
        )
        for index, cpu in enumerate(core.cpus)
    )
    return frame + cells


def _thread(ids: tuple[int | None, int], holder: Holder, place: tuple[int, int], cell: int) -> str:
    (core, cpu), (x, y) = ids, place
    where = f"CPU {cpu}" + (f", core {core}" if core is not None else "")
    whose = f": {escape(holder.name)}" if holder.name else ""
    letter = f'<tspan dx="2" font-weight="700">{escape(holder.symbol)}</tspan>'
    shown = letter if holder.kind not in {"plain", "shared"} else ""
    dark = "" if holder.kind == "nobody" else ' fill="#14181d"'
    return (
        f"<g><title>{where}{whose}</title>{swatch(holder, x, y, cell)}"
        f'<text x="{x + cell // 2}" y="{y + 13}" text-anchor="middle"{dark}>{cpu}{shown}</text></g>'
    )


def _legend(held: Ownership, top: int, width: int) -> tuple[list[str], int]:
    """The legend's elements below `top`, and their height."""
    parts: list[str] = []
    x, y = 0, top + 6
    for holder, cpus in held.legend:
        text = one_line(f"{holder.name} {cpus}", 120)
        taken = 40 + ceil(len(text) * LETTER)
        if x and x + taken > width:
            x, y = 0, y + HEIGHT + 6
        dark = "" if holder.kind == "nobody" else ' fill="#14181d"'
        parts.append(
            f"<g>{swatch(holder, x, y, 26)}"
            f'<text x="{x + 13}" y="{y + 13}" text-anchor="middle" font-weight="700"{dark}>'
            f"{escape(holder.symbol)}</text>"
            f'<text x="{x + 32}" y="{y + 13}">{escape(text)}</text></g>'
        )
        x += taken + 12
    return parts, (y + HEIGHT + 2 - top + 4) if parts else 0
