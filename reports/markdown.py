"""Renders a report in GitHub's Markdown, small enough for a comment or a step summary.

Characters that could start markup, a mention or a link become character references. Fences around
blocks of text have more backticks than any run of backticks inside.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import plural
from numaproof.protocol.events import headline, sentence_of
from numaproof.reports import wording
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.groups import causes, verdict_line
from numaproof.reports.pages import environment
from numaproof.reports.sources import citation
from numaproof.reports.story import both_ends, plain_events
from numaproof.reports.untrusted_text import one_line, shorten

if TYPE_CHECKING:
    from numaproof.protocol.events import CaseFinished, DivergenceFound
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import Summary

LIMIT = 60_000
"""Maximum size of a report in bytes, below the 65,536 characters of a GitHub comment."""

_SIGNS = {"passed": "✅", "failed": "❌", "incomplete": "⚠", "nothing tested": "⚠"}
_STORY, _LOG, _LISTED, _DRAWN_WIDTH = 4_000, 30, 40, 110


def markdown(summary: Summary, limit: int = LIMIT) -> str:
    """Renders the run as Markdown of at most `limit` bytes, with a note about omissions."""
    head, foot = _PARTS.head(summary), _PARTS.foot(summary) or "\n"
    room = limit - len(head.encode()) - len(foot.encode()) - 200
    groups = causes(summary)
    shown: list[str] = []
    for group in groups:
        text = _PARTS.details(group)
        room -= len(text.encode()) + 1
        if room < 0:
            break
        shown.append(text)
    if left := sum(group.size for group in groups[len(shown) :]):
        total = sum(group.size for group in groups)
        shown.append(
            f"_{left:,} of {plural(total, 'failure')} not shown here; "
            "see `report.html` and `events.jsonl`._\n"
        )
    title = ["## Failures\n"] if groups else []
    return "\n".join([head, *title, *shown, foot]).rstrip("\n") + "\n"


def issue(summary: Summary, failure: Failure) -> str:
    """Renders a failure as the text of an issue: what failed, where, and the case that shows it."""
    return f"{_PARTS.issue(summary, failure).strip()}\n"


def escape(text: str, limit: int = 120) -> str:
    """Returns the text on one line, escaped for Markdown, HTML and GitHub's automatic links."""
    shown = one_line(text, limit)
    # A word joiner after @ and # keeps GitHub from creating a mention or an issue link.
    return (
        re.sub(
            r"[^\w\s,.;()…⟨⟩+-]|_",
            lambda match: f"&#{ord(match[0])};" + ("&#8288;" if match[0] in "@#" else ""),
            shown,
        )
        .replace("://", "&#58;//")
        .replace("www.", "www&#46;")
    )


def code(text: str) -> str:
    """Returns the text as inline code without mentions or links."""
    return f"<code>{escape(text)}</code>"


def _code_block(text: str, language: str = "text") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def _headline(event: CaseFinished | DivergenceFound) -> str:
    return headline(sentence_of(event.message, event.finding))


def _known_failure_counts(summary: Summary) -> Counter[tuple[str, str, str]]:
    return Counter((run.signature, run.message, _headline(run)) for run in summary.known_failures)


def _drawing(failure: Failure) -> str:
    assert failure.machine_info is not None
    last = failure.pictures[-1]
    return drawn_text(failure.machine_info, last.owners, last.shared, width=_DRAWN_WIDTH).plain


_ENVIRONMENT = environment().overlay(autoescape=False)
_ENVIRONMENT.filters |= {
    "code": code,
    "drawn": _drawing,
    "escaped": escape,
    "fenced": _code_block,
    "headline": _headline,
    "log": lambda failure: both_ends(failure.stderr, _LOG),
    "one_line": one_line,
    "plain_events": plain_events,
    "shortened": lambda text: shorten(text, _STORY, "report.html"),
    "citation": citation,
}
_ENVIRONMENT.globals |= {
    "known": _known_failure_counts,
    "listed": _LISTED,
    "signs": _SIGNS,
    "symbols": wording.SYMBOLS,
    "verdict_line": verdict_line,
    "wording": wording,
}
_PARTS: Any = _ENVIRONMENT.get_template("report.md.j2").module
