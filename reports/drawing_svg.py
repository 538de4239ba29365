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

from numaproof.reports.drawing_stock import apart, of_node
from numaproof.reports.drawing_svg_stock import shelf
from numaproof.reports.drawing_swatch import HEIGHT, LETTER, swatch
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.reports.drawing_stock import Stock
    from numaproof.reports.drawing_svg_stock import Shelf
    from numaproof.reports.layout import DrawnCore, Group
    from numaproof.reports.ownership import Holder, Ownership

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


def draw(machine: Group, held: Ownership, stock: Stock) -> Markup:
    """The arranged machine as an ``<svg>`` element."""
    longest = len(str(max(held.holders, default=0)))
    grid = _Grid(10 + 7 * longest + (0 if not held.legend else 8), stock, held)
    box = _measure(machine, WIDEST, grid)
    other = shelf(apart(stock), held)
    below = box.height + (other.height + _GAP if other else 0)
    legend, legend_height = _legend(held, below + 4, max(box.width, 420))
    width = max(box.width, other.width, 420 if legend else 0)
    height = below + legend_height
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(machine.detail)}</title>"
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
