"""Draws a small SVG badge with the verdict of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.pages import environment
from numaproof.reports.story import all_failures
from numaproof.reports.untrusted_text import one_line
from numaproof.reports.wording import release_and_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reports.json_output import Verdict
    from numaproof.reports.summary import Summary

_COLOURS: Mapping[Verdict, str] = {
    "passed": "#1a7a43",
    "failed": "#b3232e",
    "incomplete": "#9a6200",
    "nothing tested": "#9a6200",
}
_LETTER, _PAD = 6.6, 7
_TEMPLATE = environment().get_template("badge.svg.j2")


def badge(summary: Summary) -> str:
    """Returns a run's badge, which shows its Kubernetes release and its result."""
    started = summary.start
    label = f"kubernetes {release_and_level(started)[0]}" if started else "numaproof"
    return shield(label, _message(summary), _COLOURS[summary.verdict])


def shield(label: str, message: str, colour: str) -> str:
    """Returns a badge with a label and a message; `colour` must be legible with white text."""
    drawn = _TEMPLATE.render(
        label=one_line(label, 40),
        message=one_line(message, 40),
        left=_width(label),
        right=_width(message),
        pad=_PAD,
        colour=colour,
    )
    return "".join(drawn.splitlines()) + "\n"


def _message(summary: Summary) -> str:
    match summary.verdict:
        case "passed" if summary.start and summary.start.bound_name:
            return f"no counterexample, bound {summary.start.bound_name}"
        case "passed":
            return f"{summary.tally.pass_count:,} passed"
        case "failed":
            bad = max(summary.tally.bad, len(all_failures(summary)))
            return f"{bad:,} of {summary.tally.total:,} failed"
        case _:
            return summary.verdict


def _width(text: str) -> int:
    return round(min(len(text), 40) * _LETTER) + 2 * _PAD
