"""Draws a machine: as SVG for pages, as text for terminals.

Both show sockets, NUMA nodes, uncore caches, cores and threads. Each thread has its CPU number and
its owner; memory in use and the owners of devices are drawn if they are known. Letters or hatching
identify owners as well as colours do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports import drawing_svg, drawing_text
from numaproof.reports.drawing_stock import NOTHING
from numaproof.reports.layout import arrange, cpus_of
from numaproof.reports.ownership import ownership

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markupsafe import Markup

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reports.drawing_stock import Stock


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
    return drawing_svg.draw(arrange(machine, held.elsewhere), held, stock)


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
    held = ownership(cpus_of(machine), owners, shared)
    return drawing_text.draw(arrange(machine, held.elsewhere), held, stock, width, color=color)
