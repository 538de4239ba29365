"""A machine as lines of text: a tree of its parts, each core's threads in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape

from numaproof.protocol.sets import IntegerSet
from numaproof.reports.layout import NOTHING, apart, arrange, cpus_of, of_node, ownership

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reports.layout import (
        DrawnCore,
        DrawnDevice,
        DrawnMemory,
        Group,
        Holder,
        Kind,
        Ownership,
        Stock,
    )

# Colours from the terminal's own palette, which suit its background.
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
_STYLES: Mapping[Kind, str] = {
    "shared": "",
    "reserved": "bold reverse",
    "offline": "dim strike",
    "several": "bold white on red",
    "nobody": "bold yellow",
    "plain": "",
}
_BAR, _SHORTEST_BAR = 20, 5


@dataclass(frozen=True, slots=True)
class _Pen:
    """How the drawing is written: its width in columns, the nodes' stock, whether in markup."""

    width: int
    digits: int
    color: bool
    stock: Stock

    def styled(self, text: str, style: str) -> str:
        safe = escape(text) if self.color else text
        return f"[{style}]{safe}[/]" if self.color and style else safe


def draw_text(  # noqa: PLR0913  # what is drawn and how, most of it by name
    machine: MachineInfo,
    owners: Iterable[Owner] = (),
    shared: str = "",
    *,
    stock: Stock = NOTHING,
    width: int = 80,
    color: bool = False,
) -> str:
    """The machine as lines of text, without a trailing line break.

    Args:
        machine: the machine to draw.
        owners: as in `numaproof.reports.drawing_svg.draw_svg`.
        shared: as in `draw_svg`.
        stock: as in `draw_svg`.
        width: maximum width in columns; a core with many threads may exceed a narrow width.
        color: whether to add rich's markup; otherwise the text is plain.
    """
    held = ownership(cpus_of(machine), owners, shared)
    whole = arrange(machine, held.elsewhere)
    largest = max(held.holders, default=0)
    pen = _Pen(width, len(str(largest)), color, stock)
    lines = [pen.styled(f"{whole.label} · {whole.detail}", "bold")]
    lines += _children(whole, "", held, pen)
    lines += _stock_lines(apart(stock), "  ", held, pen)
    lines += _legend(held, pen)
    return "\n".join(line.rstrip() for line in lines)


def _children(group: Group, rail: str, held: Ownership, pen: _Pen) -> Iterator[str]:
    if group.cores:
        yield from (f"{rail}  {row}" for row in _rows(group.cores, len(rail) + 2, held, pen))
        return
    parts = _memory_only_together(group.groups, pen)
    column = _label_column(parts, len(rail), pen)
    for number, part in enumerate(parts, 1):
        branch, below = ("└ ", "  ") if number == len(parts) else ("├ ", "│ ")
        if part.kind == "cache":
            branch = below = "  "
        name, detail = part.label, f" · {part.detail}" if part.detail else ""
        label = pen.styled(name, "dim" if part.kind == "cache" else "bold") + pen.styled(
            detail, "dim"
        )
        if not column:
            yield f"{rail}{branch}{label}"
            branches = part.groups and part.groups[0].kind != "cache"
            within = rail + below + ("│ " if branches else "  ")
            yield from _stock_lines(of_node(pen.stock, part.node), within, held, pen)
            yield from _children(part, rail + below, held, pen)
            continue
        label += " " * (column - len(name) - len(detail))
        for row in _rows(part.cores, len(rail) + 2 + column, held, pen):
            yield f"{rail}{branch}{label}{row}"
            branch, label = below, " " * column


def _label_column(parts: list[Group], used: int, pen: _Pen) -> int:
    """The width of labels to the left of the cores, or 0 to put the cores below their label.

    Caches are many and small, so their cores are always beside them; so are those of other parts
    with a single core each.
    """
    beside = bool(parts) and all(
        part.cores
        and (part.kind == "cache" or len(part.cores) == 1)
        and not of_node(pen.stock, part.node)
        for part in parts
    )
    column = max((len(part.label) + len(part.detail) + 4 for part in parts), default=0)
    return column if beside and used + column < pen.width // 2 else 0


def _memory_only_together(groups: tuple[Group, ...], pen: _Pen) -> list[Group]:
    """The groups, with identical neighbouring nodes without CPUs merged into one."""
    merged: list[tuple[Group, list[int]]] = []
    for group in groups:
        bare = group.kind == "node" and not group.cores and not group.groups
        bare = bare and not of_node(pen.stock, group.node)
        if bare and merged and merged[-1][1] and merged[-1][0].detail == group.detail:
            merged[-1][1].append(group.node or 0)
        else:
            merged.append((group, [group.node or 0] if bare else []))
    return [_renamed(group, ids) if len(ids) > 1 else group for group, ids in merged]


def _renamed(group: Group, ids: list[int]) -> Group:
    return type(group)(group.kind, f"Nodes {IntegerSet(ids)}", f"{group.detail} each")


def _rows(cores: tuple[DrawnCore, ...], used: int, held: Ownership, pen: _Pen) -> Iterator[str]:
    """Rows of cores that fit beside `used` columns, separated by lines."""
    cell = pen.digits + (0 if held.holders[cores[0].cpus[0]].kind == "plain" else 1)
    widest = max(len(core.cpus) for core in cores)
    column = widest * (cell + 1)
    count = max((pen.width - used) // (column + 1), 1)
    for start in range(0, len(cores), count):
        drawn = [_core(core, held, pen) for core in cores[start : start + count]]
        lengths = [len(core.cpus) * (cell + 1) for core in cores[start : start + count]]
        yield "│".join(
            text + " " * (column - length) for text, length in zip(drawn, lengths, strict=True)
        )


def _core(core: DrawnCore, held: Ownership, pen: _Pen) -> str:
    return "".join(" " + _thread(cpu, held.holders[cpu], pen) for cpu in core.cpus)


def _thread(cpu: int, holder: Holder, pen: _Pen) -> str:
    return pen.styled(f"{cpu:>{pen.digits}}{holder.symbol}", _style(holder))


def _stock_lines(stock: Stock, rail: str, held: Ownership, pen: _Pen) -> Iterator[str]:
    """Memory and devices of a node, one line per memory type and resource."""
    column = max((len(one.kind) for one in stock.memory), default=0)
    for memory in stock.memory:
        room = pen.width - len(rail) - column - len(memory.text) - 4
        bar = _bar(memory, min(_BAR, max(room, _SHORTEST_BAR)), pen)
        yield f"{rail}{memory.kind.ljust(column)} {bar} {memory.text}"
    for resource, devices in stock.by_resource().items():
        line, used = f"{rail}{resource}", len(rail) + len(resource)
        for device in devices:
            text, holder = _tile(device, held)
            if used + 2 + len(text) > pen.width:
                yield line
                line, used = f"{rail}  ", len(rail) + 2
            line += "  " + pen.styled(text, _style(holder) if holder else "")
            used += 2 + len(text)
        yield line


def _bar(memory: DrawnMemory, length: int, pen: _Pen) -> str:
    reserved, allocated = (round(length * share) for share in memory.shares)
    # However small, a segment that exists must be visible.
    reserved = max(reserved, memory.reserved > 0)
    allocated = max(allocated, memory.allocated > 0)
    free = "." * max(length - reserved - allocated, 0)
    return pen.styled(f"[{'#' * reserved}{'=' * allocated}{free}]", "cyan")


def _tile(device: DrawnDevice, held: Ownership) -> tuple[str, Holder | None]:
    holder = held.named.get(device.owner)
    if holder is None:
        return f"{device.label}{'' if device.healthy else ' unhealthy'}", None
    return f"{device.label} {holder.symbol}", holder


def _style(holder: Holder) -> str:
    if holder.kind == "container":
        return _CONTAINER_STYLES[holder.number % len(_CONTAINER_STYLES)]
    return _STYLES[holder.kind]


def _legend(held: Ownership, pen: _Pen) -> Iterator[str]:
    if held.legend:
        yield ""
    column = max((len(holder.name) for holder, _ in held.legend), default=0)
    for holder, cpus in held.legend:
        mark = pen.styled(f" {holder.symbol} ", _style(holder))
        yield f"{mark} {pen.styled(holder.name.ljust(column), '')}  {cpus}"
