"""Draws a machine: as SVG for pages, as text for terminals.

Both show sockets, NUMA nodes, uncore caches, cores and threads. Each thread has its CPU number and
its owner; memory in use and the owners of devices are drawn if they are known. Letters or hatching
identify owners as well as colours do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.layout import NOTHING, Stock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

__all__ = ["draw_svg", "draw_text"]


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
        owners: as in `draw_svg`.
        shared: as in `draw_svg`.
        stock: as in `draw_svg`.
        width: maximum width in columns; a core with many threads may exceed a narrow width.
        color: whether to add rich's markup; otherwise the text is plain.
    """
    drawn = drawn_text(machine, owners, shared, stock=stock, width=width)
    return drawn.markup if color else drawn.plain
