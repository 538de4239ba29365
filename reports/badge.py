"""A small SVG badge with the verdict of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from numaproof.reports.story import all_failures
from numaproof.reports.untrusted import one_line
from numaproof.reports.wording import claimed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reports.summary import Summary, Verdict

_COLOURS: Mapping[Verdict, str] = {
    "passed": "#1a7a43",
    "failed": "#b3232e",
    "incomplete": "#9a6200",
    "nothing tested": "#9a6200",
}
_LETTER, _PAD = 6.6, 7


def badge(summary: Summary) -> str:
    """The badge as an SVG document: the Kubernetes release and the result."""
    started = summary.started
    label = f"kubernetes {claimed(started)[0]}" if started else "numaproof"
    return shield(label, _message(summary), _COLOURS[summary.verdict])


def shield(label: str, message: str, colour: str) -> str:
    """A badge with any label and message, on a colour that white text can be read on."""
    left, right = _width(label), _width(message)
    text = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{all}" height="20" role="img" '
        'aria-label="{label}: {message}"><title>numaproof, {label}: {message}</title>'
        '<clipPath id="r"><rect width="{all}" height="20" rx="3"/></clipPath>'
        '<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#454d55"/>'
        '<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">'
        '<text x="{first}" y="14" textLength="{first_length}">{label}</text>'
        '<text x="{second}" y="14" textLength="{second_length}">{message}</text></g></svg>\n'
    )
    return text.format(
        all=left + right,
        left=left,
        right=right,
        colour=colour,
        label=escape(one_line(label, 40)),
        message=escape(one_line(message, 40)),
        first=left / 2,
        second=left + right / 2,
        first_length=left - 2 * _PAD,
        second_length=right - 2 * _PAD,
    )


def _message(summary: Summary) -> str:
    match summary.verdict:
        case "passed":
            return f"{summary.tally.passed:,} passed"
        case "failed":
            bad = max(summary.tally.bad, len(all_failures(summary)))
            return f"{bad:,} of {summary.tally.total:,} failed"
        case _:
            return summary.verdict


def _width(text: str) -> int:
    return round(min(len(text), 40) * _LETTER) + 2 * _PAD
