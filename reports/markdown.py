"""A report in GitHub's Markdown, small enough for a comment or a step summary.

Characters that Markdown or HTML could read as markup, a mention or a link become character
references; blocks of text are fenced with more backticks than any run inside.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.protocol.events import headline, said
from numaproof.reports.drawing import draw_text
from numaproof.reports.groups import causes, verdict_line
from numaproof.reports.story import both_ends, plain_events, source
from numaproof.reports.untrusted import one_line, shortened
from numaproof.reports.wording import (
    SYMBOLS,
    claims_lines,
    columns,
    left_lines,
    reached_lines,
    setting,
    taken_sides,
    untested_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.events import CaseFinished, DivergenceFound
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.summary import Summary, Verdict

LIMIT = 60_000
"""Maximum bytes in a report: below the 65,536 characters of a GitHub comment."""

_SIGNS: dict[Verdict, str] = {
    "passed": "✅",
    "failed": "❌",
    "incomplete": "⚠",
    "nothing tested": "⚠",
}
_STORY, _LOG, _LISTED = 4_000, 30, 40
_DRAWN_WIDTH = 110


def markdown(summary: Summary, limit: int = LIMIT) -> str:
    """The run as Markdown of at most `limit` bytes; a note says what was cut."""
    head = "\n".join(_head(summary)) + "\n"
    foot = "\n".join(_untested(summary)) + "\n"
    room = limit - len(head.encode()) - len(foot.encode()) - 200
    groups = causes(summary)
    shown: list[str] = []
    for group in groups:
        text = "\n".join(_details(group)) + "\n"
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


def _head(summary: Summary) -> Iterator[str]:
    sign = _SIGNS[summary.verdict]
    yield f"# {sign} numaproof: {summary.verdict}"
    yield ""
    yield f"**{escaped(verdict_line(summary), 400)}**"
    yield ""
    yield from _warnings(summary)
    if summary.started:
        yield from _table(
            ["", ""], ((escaped(name), escaped(value, 200)) for name, value in setting(summary))
        )
        yield from _fenced(one_line(summary.started.command, 1000), "sh")
    if summary.areas:
        whole = summary.tally
        names = ["Area", *(name for name, _ in columns(whole, whole)), "all"]
        rows = [
            (escaped(area), *(str(count or "") for _, count in columns(one, whole)), str(one.total))
            for area, one in summary.areas.items()
        ]
        total = (str(count) for _, count in columns(whole, whole))
        yield from _table(names, [*rows, ("**all**", *total, str(whole.total))])
    if summary.expected_failures:
        yield from _expected(summary)
    if sides := taken_sides(summary):
        rows = [(escaped(side, 200), str(count)) for side, count in sides[:_LISTED]]
        yield from _table(["Where kubelets break their documents", "case runs"], rows)
    yield from _claims(summary)
    if summary.known_failures:
        yield from _known(summary)
    if summary.known_examples:
        yield from _known_examples(summary)
    if summary.reached is not None and summary.reached.examples:
        examples = plural(summary.reached.examples, "example")
        yield f"<details><summary>Covered in {examples}</summary>"
        yield ""
        reached = reached_lines(summary.reached)
        yield from _table(
            ["", ""], ((escaped(one), escaped(shown, 2_000)) for one, shown in reached)
        )
        yield "</details>"
        yield ""


def _warnings(summary: Summary) -> Iterator[str]:
    lines = [f"**Incomplete run.** {escaped(gap, 500)}" for gap in summary.gaps]
    lines += [escaped(line, 400) for line in left_lines(summary)]
    if summary.verdict == "nothing tested":
        lines.append("**Nothing was tested**: no case ran, or none is supported.")
    for line in lines:
        yield f"> ⚠ {line}"
        yield ">"
    if lines:
        yield ""


def _expected(summary: Summary) -> Iterator[str]:
    counts = Counter(run.defect or "unnamed defect" for run in summary.expected_failures)
    yield from _table(
        ["Expected failure (named defect)", "case runs"],
        ((escaped(name), str(count)) for name, count in list(counts.items())[:_LISTED]),
    )


def _claims(summary: Summary) -> Iterator[str]:
    lines = claims_lines(summary)
    yield from (f"- {escaped(line, 400)}" for line in lines)
    if lines:
        yield ""


def _known(summary: Summary) -> Iterator[str]:
    runs = summary.known_failures
    counts = Counter((run.signature, run.message, _headline(run)) for run in runs)
    yield from _table(
        ["Known failure", "", "case runs"],
        (
            (code(name), escaped(why, 240), str(count))
            for (name, _, why), count in list(counts.items())[:_LISTED]
        ),
    )


def _headline(found: CaseFinished | DivergenceFound) -> str:
    return headline(said(found.message, found.finding))


def _known_examples(summary: Summary) -> Iterator[str]:
    yield from _table(
        ["Known failure", "", "smallest example"],
        (
            (code(one.signature), escaped(_headline(one), 240), code(one.file or ""))
            for one in summary.known_examples[:_LISTED]
        ),
    )


def _untested(summary: Summary) -> Iterator[str]:
    if not summary.untested:
        return
    yield f"<details><summary>{untested_line(summary)}</summary>"
    yield ""
    for requirement in summary.named(summary.untested[:_LISTED]):
        yield f"- {code(requirement.id)} {escaped(requirement.statement, 240)}"
    if len(summary.untested) > _LISTED:
        yield f"- … and {len(summary.untested) - _LISTED} more"
    yield ""
    yield "</details>"


def _details(group: FailureGroup) -> Iterator[str]:
    failure = group.first
    title = f"{code(failure.name)} " if failure.name else ""
    yield (
        f"<details><summary>{SYMBOLS[failure.outcome]} <b>{failure.outcome}</b> "
        f"{title}{escaped(failure.title, 600)} on {code(failure.machine)}"
        f"{f' (+{len(group.others)})' if group.others else ''}</summary>"
    )
    yield ""
    for more in (group.also(), group.elsewhere(_LISTED)):
        if more:
            yield escaped(more, 4_000)
            yield ""
    for requirement in failure.requirements[:_LISTED]:
        where = f" ({escaped(source(requirement), 160)})" if source(requirement) else ""
        yield f"- {code(requirement.id)} {escaped(requirement.statement, 400)}{where}"
    yield ""
    if shown := plain_events(failure):
        yield from _fenced(shortened(shown, _STORY, "report.html"), "")
    if failure.stderr:
        yield f"{failure.log_name}:"
        yield from _fenced(both_ends(failure.stderr, _LOG), "")
    if failure.drawn is not None and failure.pictures:
        last = failure.pictures[-1]
        drawn = draw_text(failure.drawn, last.owners, last.shared, width=_DRAWN_WIDTH)
        yield f"{escaped(last.title, 160)}:"
        yield from _fenced(shortened(drawn, _STORY, "report.html"), "")
    yield "</details>"


def _table(names: list[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(names) + " |"
    yield "|" + "|".join([" --- ", *[" ---: "] * (len(names) - 1)]) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _fenced(text: str, language: str) -> Iterator[str]:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"{fence}{language or 'text'}"
    yield text
    yield fence
    yield ""


def escaped(text: str, limit: int = 120) -> str:
    """The text on one line, escaped for Markdown, HTML and GitHub's automatic links."""
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
    """The text as inline code, in which GitHub creates no mentions or links."""
    return f"<code>{escaped(text)}</code>"
