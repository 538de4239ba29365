"""Draws a machine as SVG: nested boxes in rows of about equal length.

All styling is in presentation attributes, because a page's content security policy may forbid
styles. Hatching consists of individual lines, because the pattern ids of several drawings on one
page would clash.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from numaproof.reports import layout
from numaproof.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

WIDEST = 1040
"""Maximum width of a drawing, in CSS pixels."""

_NARROWEST = 400
"""Minimum width of sockets that are drawn side by side, in CSS pixels."""

_MARGIN, _TITLE = 16, 44
"""Margin of a drawing with a title, and height of the title, in CSS pixels."""

_HEIGHT = 18
"""Height of a swatch, in CSS pixels."""

_LETTER = 6.9
"""Upper bound for the average width of a letter, in CSS pixels."""

_GAP, _PAD, _LABEL = 6, 8, 16
_SHELF, _BAR, _SHELF_GAP = 330, 8, 4

# Distinguishable with common kinds of colour blindness; dark text is legible on all of them.
_COLOURS = (
    *("#56b4e9", "#f0a531", "#5fc9a4", "#f0e442"),
    *("#d68fb8", "#e58a66", "#9fb2ff", "#c3bb96"),
)
_BARS = ((), (_HEIGHT - 4,), (0,), (0, _HEIGHT - 4))
"""Where the swatches of containers have bars, to distinguish those of equal colour."""

_EMPHASIS = 'fill="#14181d" fill-opacity=".6"'
_SHARED, _DARK = "#e4e7eb", ' fill="#14181d"'

_LOOKS: Mapping[layout.Kind, str] = {
    "reserved": 'fill="#aeb6c0"',
    "offline": 'fill="#f4f4f4" stroke="#999" stroke-dasharray="2 2"',
    "nobody": 'fill="none" stroke="#d9822b" stroke-dasharray="3 2"',
}
"""Fill and stroke of swatches other than those of containers and the shared pool."""

_MEMORY = {
    "free": 'fill="currentColor" fill-opacity=".12"',
    "reserved": 'fill="#5c6773"',
    "allocated": 'fill="#2f81d6"',
}
_OPACITIES = {"socket": ".07", "node": ".05"}


def draw_svg(  # noqa: PLR0913  # most are keyword-only
    machine: MachineInfo,
    owners: Iterable[Owner] = (),
    shared: str = "",
    *,
    stock: layout.Stock = layout.NOTHING,
    numbers: Mapping[str, int] | None = None,
    caches: Sequence[layout.CacheGroup] = (),
    title: str = "",
    setting: Sequence[str] = (),
    widest: int = WIDEST,
) -> Markup:
    """Draws a machine as an ``<svg>`` element, for a page or a file.

    It needs no style sheet. Lines and labels have the colour of the surrounding text.

    Args:
        machine: the machine to draw.
        owners: the owners of CPUs. The names ``reserved`` and ``offline`` stand for reserved and
            offline CPUs; all other names are containers.
        shared: the CPUs of the shared pool, in the Linux list format.
        stock: memory and devices; an owner may have devices but no CPUs.
        numbers: the number of each container, from `layout.numbering`, for a series of drawings.
        caches: caches that divide the cores of a group further.
        title: a line above the drawing. With it, the drawing has a margin and states its totals.
        setting: what describes the node, below the title.
        widest: maximum width in CSS pixels; a single core or label may be wider.
    """
    held = layout.ownership(layout.cpus_of(machine), owners, shared, numbers)
    whole = layout.arrange(machine, held.elsewhere, stock, caches)
    longest = len(str(max(held.holders, default=0)))
    drawing = _Drawing(10 + 7 * longest + 8 * held.symbol_width, stock, held)
    box, other = drawing.group(whole, widest), drawing.shelf(layout.without_node(stock))
    below = box.height + (other.height + _GAP if other.height else 0)
    legend, legend_height = drawing.legend(below + 4, min(max(box.width, 420), widest))
    width = max(box.width, other.width, min(420, widest) if legend else 0)
    height = below + legend_height
    drawn = "".join((*box.draw(0, 0), *other.draw(0, box.height + _GAP), *legend))
    if title:
        head = one_line(title, _LONGEST_TITLE)
        width = max(width, *(_text_width(text, 14 / 11) for text in (head, whole.detail)))
        about = [whole.detail, *_lines(setting, width)]
        texts = (_text(line, _MARGIN, 46 + _LABEL * n) for n, line in enumerate(about))
        top = _TITLE + _LABEL * (len(about) - 1)
        drawn = (
            f'<text x="{_MARGIN}" y="28" font-size="14" font-weight="700">{escape(head)}</text>'
            f"{''.join(texts)}"
            f'<g transform="translate({_MARGIN} {_MARGIN + top})">{drawn}</g>'
        )
        width, height = width + 2 * _MARGIN, height + 2 * _MARGIN + top
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(' · '.join(filter(None, (title, *setting, whole.detail))))}</title>"
    )
    return Markup(f"{opening}{drawn}</svg>")  # noqa: S704  # all text is escaped


_LONGEST_TITLE = 160


def _lines(texts: Sequence[str], width: int) -> list[str]:
    """Joins texts to lines that are not wider than the drawing, if possible."""
    lines: list[str] = []
    for text in texts:
        line = f"{lines[-1]} · {text}" if lines else text
        if lines and _text_width(line) <= width:
            lines[-1] = line
        else:
            lines.append(text)
    return lines


def drawing_file(drawing: Markup) -> str:
    """Returns a drawing as the content of an SVG file: dark on white."""
    text = str(drawing).replace("<svg ", '<svg color="#1b2129" ', 1)
    ground = '</title><rect width="100%" height="100%" fill="#fff"/>'
    text = text.replace("</title>", ground, 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def drawing_image(drawing: Markup) -> str:
    """Returns a drawing as the address of an image, for pages with too many to be elements.

    An image does not inherit the colour of the text, so it follows the reader's colour scheme.
    """
    dark = "@media (prefers-color-scheme: dark)"
    style = f"<style>svg{{color:#1b2129}}{dark}{{svg{{color:#e4e9ee}}}}</style>"
    text = str(drawing).replace("</title>", f"</title>{style}", 1)
    return f"data:image/svg+xml,{quote(text, safe=' /:;=,()')}"


class _Box(NamedTuple):
    """A part of the drawing: its size, and a function that draws it at a position."""

    width: int
    height: int
    draw: Callable[[int, int], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The parameters of a drawing; `cell` is the width of a thread with the longest CPU number."""

    cell: int
    stock: layout.Stock
    ownership: layout.Ownership

    def group(self, group: layout.Group, limit: int) -> _Box:
        """Draws a group and its contents, no wider than `limit` if possible."""
        bare = group.kind == "machine"
        pad, top = (0, 0) if bare else (_PAD, _LABEL + 6)
        inside = limit - 2 * pad
        if bare and sum(part.kind == "socket" for part in group.groups) > 1:
            columns = max(limit // _NARROWEST, 1)
            inside = (limit - (columns - 1) * _GAP) // columns
        boxes = [self.group(part, inside) for part in group.groups]
        parts = boxes or [self.core(core) for core in group.cores]
        gap = _GAP if boxes else 4
        # Nodes without CPUs are small, so they get rows of their own after the others.
        full = sum(
            bool(part.groups or (part.cores and part.kind != "elsewhere")) for part in group.groups
        )
        places, width, height = _flow(parts[: full or None], limit - 2 * pad, gap)
        if full and parts[full:]:
            more, wider, higher = _flow(parts[full:], limit - 2 * pad, gap)
            places += [(x, y + height + _GAP) for x, y in more]
            width, height = max(width, wider), height + _GAP + higher
        shelf = self.shelf(layout.of_node(self.stock, group.node))
        heading = "" if bare else " · ".join(filter(None, (group.label, group.detail)))
        width = max(width, ceil(len(heading) * _LETTER), shelf.width) + 2 * pad
        height += top + shelf.height + (pad if parts or shelf.height else 0)

        def draw(x: int, y: int) -> Iterator[str]:
            if not bare:
                yield _frame(group, heading, (x, y), width, height)
            yield from shelf.draw(x + _PAD, y + _LABEL + 6)
            for part, (dx, dy) in zip(parts, places, strict=True):
                yield from part.draw(x + pad + dx, y + top + shelf.height + dy)

        return _Box(width, height, draw)

    def core(self, core: layout.DrawnCore) -> _Box:
        """Draws a core: its threads in one column, or in two rows if there are more than two."""
        rows = min(len(core.cpus), 2)
        columns = ceil(len(core.cpus) / max(rows, 1))
        width, height = columns * self.cell + 4, rows * _HEIGHT + 4

        def draw(x: int, y: int) -> Iterator[str]:
            look = 'rx="3" fill="none" stroke="currentColor" stroke-opacity=".45"'
            yield _rect(x, y, width, height, look)
            for index, cpu in enumerate(core.cpus):
                row, column = divmod(index, columns)
                yield self.thread(core, cpu, x + 2 + column * self.cell, y + 2 + row * _HEIGHT)

        return _Box(width, height, draw)

    def thread(self, core: layout.DrawnCore, cpu: int, x: int, y: int) -> str:
        """Draws a thread with its number and owner."""
        holder = self.ownership.holders[cpu]
        where = f"CPU {cpu}" + (f", core {core.core}" if core.core is not None else "")
        whose = f": {escape(holder.name)}" if holder.name else ""
        letter = f'<tspan dx="2" font-weight="700">{escape(holder.symbol)}</tspan>'
        shown = letter if holder.kind not in {"plain", "shared"} else ""
        dark = "" if holder.kind == "nobody" else _DARK
        text = _centred_text(f"{cpu}{shown}", x + self.cell // 2, y, dark)
        return f"<g><title>{where}{whose}</title>{_swatch(holder, x, y, self.cell)}{text}</g>"

    def shelf(self, stock: layout.Stock) -> _Box:
        """Draws memory, then devices below it."""
        parts: list[str] = []
        y = 0
        texts = [_text_width(_memory_text(one)) for one in stock.memory]
        width = max(_SHELF, *texts) if texts else 0
        rows = {name: self._rows(devices) for name, devices in stock.by_resource().items()}
        for name, placed in rows.items():
            width = max(width, _text_width(name), *(x + wide for x, _, wide, _ in placed))
        for memory in stock.memory:
            parts += (_text(_memory_text(memory), 0, y + 11), _bar(memory, y + 16, width))
            y += 28
        for name, placed in rows.items():
            parts.append(_text(name, 0, y + 11))
            for x, row, wide, device in placed:
                parts.append(self._tile(device, x, y + 16 + row * (_HEIGHT + 3), wide))
            y += 16 + (placed[-1][1] + 1) * (_HEIGHT + 3) + _SHELF_GAP
        drawn = "".join(parts)
        return _Box(
            width,
            y,
            lambda x, y: [f'<g transform="translate({x} {y})">{drawn}</g>'] if drawn else (),
        )

    def _rows(
        self, devices: list[layout.DrawnDevice]
    ) -> list[tuple[int, int, int, layout.DrawnDevice]]:
        placed, x, row = [], 0, 0
        for device in devices:
            wide = _text_width(self._label(device)) + 12
            if x and x + wide > _SHELF:
                x, row = 0, row + 1
            placed.append((x, row, wide, device))
            x += wide + _SHELF_GAP
        return placed

    def _label(self, device: layout.DrawnDevice) -> str:
        if holder := self.ownership.by_name.get(device.owner):
            return f"{device.label} {holder.symbol}"
        return device.label if device.healthy else f"{device.label} unhealthy"

    def _tile(self, device: layout.DrawnDevice, x: int, y: int, wide: int) -> str:
        holder = self.ownership.by_name.get(device.owner)
        dash = "" if device.healthy else ' stroke-dasharray="3 2"'
        look = f'rx="2" fill="none" stroke="currentColor" stroke-opacity=".5"{dash}'
        empty = _rect(x + 0.5, y + 0.5, wide - 2, _HEIGHT - 2, look)
        whose = holder.name if holder else "free" if device.healthy else "unhealthy"
        near = f"near node {', '.join(map(str, device.nodes))}" if device.nodes else "near no node"
        title = escape(f"{device.resource} {device.label}, {near}: {whose}")
        text = _centred_text(escape(self._label(device)), x + wide // 2, y, _DARK if holder else "")
        ground = _swatch(holder, x, y, wide) if holder else empty
        return f"<g><title>{title}</title>{ground}{text}</g>"

    def legend(self, top: int, width: int) -> tuple[list[str], int]:
        """Returns the legend's elements below `top`, and their height."""
        parts: list[str] = []
        x, y = 0, top + 6
        for holder, cpus in self.ownership.legend:
            text = one_line(f"{holder.name} {cpus}", 120)
            taken = 40 + ceil(len(text) * _LETTER)
            if x and x + taken > width:
                x, y = 0, y + _HEIGHT + 6
            dark = ' font-weight="700"' + ("" if holder.kind == "nobody" else _DARK)
            symbol = _centred_text(escape(holder.symbol), x + 13, y, dark)
            swatch, name = _swatch(holder, x, y, 26), _text(text, x + 32, y + 13)
            parts.append(f"<g>{swatch}{symbol}{name}</g>")
            x += taken + 12
        return parts, (y + _HEIGHT + 2 - top + 4) if parts else 0


def _flow(boxes: Sequence[_Box], limit: int, gap: int) -> tuple[list[tuple[int, int]], int, int]:
    """Arranges boxes in rows of about equal length, no wider than `limit`.

    Returns:
        The position of each box, and the total width and height.
    """
    if not boxes:
        return [], 0, 0
    widest = max(box.width for box in boxes)
    fitting = max((limit + gap) // (widest + gap), 1)
    rows = ceil(len(boxes) / fitting)
    even = ceil(len(boxes) / rows)
    even = next((n for n in (8, 16, 32) if even <= n <= fitting and len(boxes) % n == 0), even)
    places, y, right = [], 0, 0
    for start in range(0, len(boxes), even):
        row = boxes[start : start + even]
        places += [(number * (widest + gap), y) for number in range(len(row))]
        right = max(
            right, *(x + box.width for box, (x, _) in zip(row, places[start:], strict=True))
        )
        y += max(box.height for box in row) + gap
    return places, right, y - gap


# Marks


def _rect(x: float | str, y: float, width: float | str, height: float, look: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {look}/>'


def _text(text: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y}">{escape(text)}</text>'


def _centred_text(markup: str, x: int, y: int, look: str) -> str:
    return f'<text x="{x}" y="{y + 13}" text-anchor="middle"{look}>{markup}</text>'


def _text_width(text: str, scale: float = 1) -> int:
    return ceil(len(text) * _LETTER * 0.86 * scale)


def _frame(
    group: layout.Group, heading: str, place: tuple[int, int], width: int, height: int
) -> str:
    x, y = place
    dash = ' stroke-dasharray="4 3"' if group.kind == "elsewhere" else ""
    note = f"<title>{escape(group.note)}</title>" if group.note else ""
    weight = "600" if group.kind in _OPACITIES else "400"
    look = (
        f'rx="5" fill-opacity="{_OPACITIES.get(group.kind, ".04")}" '
        f'stroke="currentColor" stroke-opacity=".35"{dash}'
    )
    return (
        f"<g>{note}{_rect(x + 0.5, y + 0.5, width - 1, height - 1, look)}"
        f'<text x="{x + _PAD}" y="{y + _LABEL}" font-weight="{weight}">{escape(heading)}</text></g>'
    )


def _swatch(holder: layout.Holder, x: int, y: int, width: int) -> str:
    """Draws the background of a cell: a colour, with lines if colour alone is ambiguous."""
    wide, high = width - 1, _HEIGHT - 1
    turn, own_colour = divmod(holder.number, len(_COLOURS))
    colours = [_COLOURS[own_colour], *(_COLOURS[number % len(_COLOURS)] for number in holder.parts)]
    own = colours[0] if holder.kind == "container" else _SHARED
    first, second = (*colours[1:], _SHARED, _SHARED)[:2]
    look = _LOOKS.get(holder.kind, f'fill="{first if holder.kind == "several" else own}"')
    ground = _rect(x, y, wide, high, f'rx="2" {look}')
    match holder.kind:
        case "container":
            bars = (_rect(x, y + top, wide, 3, _EMPHASIS) for top in _BARS[turn % len(_BARS)])
            return f"{ground}{''.join(bars)}"
        case "reserved":
            starts = range(0, wide - high, 6)
            lines = "".join(f"M{x + start} {y + high}l{high} {-high}" for start in starts)
            return f'{ground}<path d="{lines}" stroke="#5c6773" stroke-opacity=".55"/>'
        case "offline":
            lines = f"M{x} {y}l{wide} {high}m0 {-high}l{-wide} {high}"
            return f'{ground}<path d="{lines}" stroke="#bbb"/>'
        case "several":
            corner = f'<path d="M{x + wide} {y}v{high}h{-wide}z" fill="{second}"/>'
            frame = 'rx="2" fill="none" stroke="#c1121f" stroke-width="2"'
            return f"{ground}{corner}{_rect(x, y, wide, high, frame)}"
    return ground


def _memory_text(memory: layout.DrawnMemory) -> str:
    return f"{memory.kind}: {memory.text}"


def _bar(memory: layout.DrawnMemory, y: int, width: int) -> str:
    reserved, allocated = (width * share for share in memory.shares)
    segments = (
        ("free", 0.0, width),
        ("reserved", 0.0, reserved),
        ("allocated", reserved, allocated),
    )
    # Even the smallest segment must be visible.
    drawn = (
        _rect(f"{x:.1f}", y, f"{max(wide, 1.5):.1f}", _BAR, _MEMORY[share])
        for share, x, wide in segments
        if wide
    )
    return f"<g><title>{escape(_memory_text(memory))}</title>{''.join(drawn)}</g>"
