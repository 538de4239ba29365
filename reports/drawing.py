"""The machine, drawn: as SVG for pages, as text for terminals.

Both show sockets, NUMA nodes, uncore caches, cores and threads, each thread with its CPU number
and its owner, and where it is known how much memory is in use and who has which devices. Whose
something is can be read from its letter or hatching as well as from its colour.
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
    """The machine as one ``<svg>`` element, for a page or for a file of its own.

    It needs no style sheet and takes the colour of lines and labels from the text around it.

    Args:
        machine: what is drawn.
        owners: who has which CPUs. The names ``reserved`` and ``offline`` stand for the
            reservation and for offline CPUs, every other name for a container.
        shared: the CPUs of the shared pool, in the Linux list format.
        stock: memory and devices; an owner may have devices and no CPUs.
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
    """The machine as lines of text, without a line break at the end.

    Args:
        machine: what is drawn.
        owners: as in `draw_svg`.
        shared: as in `draw_svg`.
        stock: as in `draw_svg`.
        width: columns to keep to; a core with many threads may need more than a narrow width.
        color: whether to mark the text up for rich. Without it the text is plain.
    """
    held = ownership(cpus_of(machine), owners, shared)
    return drawing_text.draw(arrange(machine, held.elsewhere), held, stock, width, color=color)
