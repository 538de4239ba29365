"""An answer about a node as a self-contained HTML page, or as an SVG drawing.

The page loads nothing and runs nothing: its content security policy allows only its own style,
by hash. Jinja escapes every value, and hidden characters are made visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.answers import HEADS, SIGNS, mark_of, shown
from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.pages import environment, own_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from markupsafe import Markup

    from numaproof.reports.answers import AnswerReport, Mark

_WORDS: Mapping[Mark, str] = {"good": "preferred", "fair": "possible", "bad": "impossible"}


def html(answer: AnswerReport) -> str:
    """The whole answer as a page."""
    template = environment().get_template("answer.html.j2")
    return template.render(
        answer=answer,
        verdict=mark_of(answer),
        style=own_file("answer.css"),
        signs=SIGNS,
        words=_WORDS,
        heads=HEADS,
        shown=shown(answer.rows),
        drawing=_drawing(answer),
    )


def svg(answer: AnswerReport) -> str:
    """The drawing alone, as an SVG file."""
    drawing = str(_drawing(answer)).replace("<svg ", '<svg color="#1b2129" ', 1)
    ground = '</title><rect width="100%" height="100%" fill="#fff"/>'
    drawing = drawing.replace("</title>", ground, 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing}\n'


def _drawing(answer: AnswerReport) -> Markup:
    return draw_svg(answer.machine, answer.owners, answer.shared, stock=answer.stock)


WRITERS: Mapping[str, Callable[[AnswerReport], str]] = {".html": html, ".svg": svg}
"""The writer for each file name extension."""
