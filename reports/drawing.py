"""Draws a machine: as SVG for pages, as text for terminals.

Both show sockets, NUMA nodes, uncore caches, cores and threads. Each thread has its CPU number and
its owner; memory in use and the owners of devices are drawn if they are known. Letters or hatching
identify owners as well as colours do.
"""

from __future__ import annotations

from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.drawing_text import draw_text

__all__ = ["draw_svg", "draw_text"]
