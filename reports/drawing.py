"""Draws machines as SVG and as text.

Drawings show sockets, NUMA nodes, uncore caches, cores and threads, with the owner of each CPU and,
if known, of memory and devices. Owners are told apart by letters and hatching, not only by colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.layout import NOTHING, Stock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

__all__ = ["draw_svg", "draw_text"]


def draw_text(  # noqa: PLR0913  # most are keyword-only
    machine: MachineInfo,
    owners: Iterable[Owner] = (),
    shared: str = "",
    *,
    stock: Stock = NOTHING,
    numbers: Mapping[str, int] | None = None,
    width: int = 80,
    color: bool = False,
) -> str:
    """Draws a machine as text, without a trailing newline.

    Args:
        machine: the machine to draw.
        owners: as in `draw_svg`.
        shared: as in `draw_svg`.
        stock: as in `draw_svg`.
        numbers: as in `draw_svg`.
        width: maximum width in columns; a core with many threads may be wider.
        color: whether to add rich's markup.
    """
    drawn = drawn_text(machine, owners, shared, stock=stock, numbers=numbers, width=width)
    return drawn.markup if color else drawn.plain
