"""An answer about a node as one self-contained HTML page, or as an SVG drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.drawing import draw_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from markupsafe import Markup

    from numaproof.reports.answers import Answer


def svg(answer: Answer) -> str:
    """The drawing alone, as a file of its own."""
    drawing = str(_drawing(answer)).replace("<svg ", '<svg color="#1b2129" ', 1)
    ground = '</title><rect width="100%" height="100%" fill="#fff"/>'
    drawing = drawing.replace("</title>", ground, 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing}\n'


def _drawing(answer: Answer) -> Markup:
    return draw_svg(answer.machine, answer.owners, answer.shared, stock=answer.stock)


WRITERS: Mapping[str, Callable[[Answer], str]] = {".svg": svg}
"""What writes a file, by the end of its name."""
