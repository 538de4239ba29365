"""Draws a machine as text: a tree of its parts, with each core's threads in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from numaproof.reports import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

# The terminal's own palette suits its background.
_CONTAINER_STYLES = (
    "black on bright_cyan",
    "black on bright_yellow",
    "black on bright_green",
    "black on bright_magenta",
    "white on blue",
    "white on red",
    "black on cyan",
    "black on yellow",
)
_EMPHASES = ("", " underline", " italic", " underline italic")
"""What distinguishes containers whose colours are equal."""

_STYLES: Mapping[layout.Kind, str] = {
    "shared": "",
    "reserved": "bold reverse",
    "offline": "dim strike",
    "several": "bold white on red",
    "nobody": "bold yellow",
    "plain": "",
}
_BAR, _SHORTEST_BAR = 20, 5


def drawn_text(  # noqa: PLR0913  # most are keyword-only
    machine: MachineInfo,
    owners: Iterable[Owner] = (),
    shared: str = "",
    *,
    stock: layout.Stock = layout.NOTHING,
    numbers: Mapping[str, int] | None = None,
    caches: Sequence[layout.CacheGroup] = (),
    same_nodes: frozenset[int] = frozenset(),
    width: int = 80,
) -> Text:
    """Draws a machine as coloured text, without a trailing newline.

    Args:
        machine: the machine to draw.
        owners: as in `numaproof.reports.drawing_svg.draw_svg`.
        shared: as in `draw_svg`.
        stock: as in `draw_svg`.
        numbers: as in `draw_svg`.
        caches: as in `draw_svg`.
        same_nodes: the NUMA nodes to mention without drawing them again.
        width: maximum width in columns; a core with many threads may be wider.
    """
    held = layout.ownership(layout.cpus_of(machine), owners, shared, numbers)
    drawing = _Drawing(width, len(str(max(held.holders, default=0))), stock, held, same_nodes)
    lines = list(drawing.lines(layout.arrange(machine, held.elsewhere, stock, caches)))
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """The parameters of a drawing; `digits` is the width of a CPU number.

    The NUMA nodes in `same_nodes` are not drawn.
    """

    width: int
    digits: int
    stock: layout.Stock
    ownership: layout.Ownership
    same_nodes: frozenset[int]

    def lines(self, whole: layout.Group) -> Iterator[Text]:
        yield Text(f"{whole.label} · {whole.detail}", "bold")
        yield from self._children(whole, "")
        yield from self._stock_lines(layout.without_node(self.stock), "  ")
        if self.ownership.legend:
            yield Text()
        column = max((len(holder.name) for holder, _ in self.ownership.legend), default=0)
        letters = self.ownership.symbol_width
        for holder, cpus in self.ownership.legend:
            mark = (f" {holder.symbol:<{letters}} ", _style(holder))
            yield Text.assemble(mark, f" {holder.name.ljust(column)}  {cpus}")

    def _children(self, group: layout.Group, rail: str) -> Iterator[Text]:
        if group.cores:
            for row in self._rows(group.cores, len(rail) + 2):
                yield Text.assemble(rail, "  ", row)
            return
        parts = group.groups
        column = self._label_column(parts, len(rail))
        for number, part in enumerate(parts, 1):
            branch, below = ("└ ", "  ") if number == len(parts) else ("├ ", "│ ")
            if part.kind == "cache":
                branch = below = "  "
            detail = f" · {part.detail}" if part.detail else ""
            name = (part.label, "dim" if part.kind == "cache" else "bold")
            label = Text.assemble(name, (detail, "dim"))
            if part.node in self.same_nodes:
                yield Text.assemble(rail, branch, label, (" · as before", "dim"))
                continue
            if not column:
                yield Text.assemble(rail, branch, label)
                branches = part.groups and part.groups[0].kind != "cache"
                within = rail + below + ("│ " if branches else "  ")
                yield from self._stock_lines(layout.of_node(self.stock, part.node), within)
                yield from self._children(part, rail + below)
                continue
            label.pad_right(column - len(label))
            for row in self._rows(part.cores, len(rail) + 2 + column):
                yield Text.assemble(rail, branch, label, row)
                branch, label = below, Text(" " * column)

    def _label_column(self, parts: Sequence[layout.Group], indent: int) -> int:
        """Returns the width of labels to the left of the cores, or 0 for labels above the cores.

        Labels are on the left if the parts are caches (there are many small ones) or have a single
        core each.
        """
        beside = bool(parts) and all(
            part.cores
            and (part.kind == "cache" or len(part.cores) == 1)
            and not layout.of_node(self.stock, part.node)
            for part in parts
        )
        column = max((len(part.label) + len(part.detail) + 4 for part in parts), default=0)
        return column if beside and indent + column < self.width // 2 else 0

    def _rows(self, cores: tuple[layout.DrawnCore, ...], indent: int) -> Iterator[Text]:
        """Yields rows of cores, separated by lines, that fit beside `indent` columns."""
        holders = self.ownership.holders
        symbol = self.ownership.symbol_width
        cell = self.digits + symbol
        column = max(len(core.cpus) for core in cores) * (cell + 1)
        count = max((self.width - indent) // (column + 1), 1)
        for start in range(0, len(cores), count):
            drawn = [Text() for _ in cores[start : start + count]]
            for text, core in zip(drawn, cores[start:], strict=False):
                for cpu in core.cpus:
                    holder = holders[cpu]
                    text.append(" ")
                    text.append(f"{cpu:>{self.digits}}{holder.symbol:<{symbol}}", _style(holder))
                text.pad_right(column - len(core.cpus) * (cell + 1))
            yield Text("│").join(drawn)

    def _stock_lines(self, stock: layout.Stock, rail: str) -> Iterator[Text]:
        column = max((len(one.kind) for one in stock.memory), default=0)
        for memory in stock.memory:
            room = self.width - len(rail) - column - len(memory.text) - 4
            bar = (_bar(memory, min(_BAR, max(room, _SHORTEST_BAR))), "cyan")
            yield Text.assemble(f"{rail}{memory.kind.ljust(column)} ", bar, f" {memory.text}")
        for resource, devices in stock.by_resource().items():
            line = Text(f"{rail}{resource}")
            for device in devices:
                holder = self.ownership.by_name.get(device.owner)
                state = "" if device.healthy else " unhealthy"
                text = f"{device.label}{f' {holder.symbol}' if holder else state}"
                if len(line) + 2 + len(text) > self.width:
                    yield line
                    line = Text(f"{rail}  ")
                line.append("  ").append(text, _style(holder) if holder else "")
            yield line


def _bar(memory: layout.DrawnMemory, length: int) -> str:
    reserved, allocated = (round(length * share) for share in memory.shares)
    # Even the smallest segment must be visible.
    reserved = max(reserved, memory.reserved > 0)
    allocated = max(allocated, memory.allocated > 0)
    free = "." * max(length - reserved - allocated, 0)
    return f"[{'#' * reserved}{'=' * allocated}{free}]"


def _style(holder: layout.Holder) -> str:
    if holder.kind == "container":
        turn, colour = divmod(holder.number, len(_CONTAINER_STYLES))
        return _CONTAINER_STYLES[colour] + _EMPHASES[turn % len(_EMPHASES)]
    return _STYLES[holder.kind]
