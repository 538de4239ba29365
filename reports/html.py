"""Renders a run as a self-contained HTML page that loads nothing.

Jinja escapes every value, and hidden characters (controls, direction marks) are made visible. The
content security policy allows only the page's own style and script, identified by hash, so even
markup that got past the escaping would be harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from numaproof.inputs.plurals import plural
from numaproof.reports import wording
from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.groups import causes, counts_line
from numaproof.reports.pages import environment, package_file
from numaproof.reports.story import all_failures, bad_steps, both_ends, source
from numaproof.reports.summary import OUTCOMES
from numaproof.reports.untrusted_text import shorten, visible
from numaproof.reports.values import diff_lines, group_values, pretty, segments, without_machine
from numaproof.reports.wording import SYMBOLS, baseline_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

    from numaproof.protocol.events import CaseFinished, Outcome, ReportedCall, ReportedRequirement
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import OutcomeTally, Summary


ROOM = 6_000_000
"""Approximate maximum size of all cards, in characters; further failures get only a line."""

MAX_LINES = 5_000
"""Maximum number of failures that get only a line."""

_VALUE, _DIFF, _LOG, _STEPS, _DIFF_WIDTH = 12_000, 500, 200, 60, 40
_LINE = 500


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A call on the page: formatted JSON, and the lines of the diff.

    `bad` indicates whether the call is part of the failure. `before` lists what the harness did
    before the call.
    """

    number: int
    operation: str
    args: str
    answer: str
    problems: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]
    bad: bool
    before: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A cause, represented by its smallest failure.

    `others` holds the other failures with this cause. `also` describes its other signatures.
    `left_out` counts omitted steps.
    """

    failure: Failure
    others: tuple[Failure, ...]
    also: str
    steps: tuple[ShownStep, ...]
    pictures: tuple[tuple[str, Markup], ...]
    stderr: str
    left_out: int

    @property
    def size(self) -> int:
        """The approximate size of the card in characters."""
        drawn = sum(len(picture) for _, picture in self.pictures)
        steps = sum(
            len(step.args) + len(step.answer) + sum(40 + len(line) for _, line in step.diff)
            for step in self.steps
        )
        return 2_000 + drawn + steps + len(self.stderr) + _LINE * len(self.others)


def failure_cards(summary: Summary) -> tuple[tuple[Card, ...], tuple[Failure, ...]]:
    """Returns a card for each cause, and the failures for which there was no room."""
    groups = causes(summary)
    cards: list[Card] = []
    room = ROOM
    for group in groups:
        card = _card(group)
        room -= card.size
        if room < 0:
            break
        cards.append(card)
    remaining = [one for group in groups[len(cards) :] for one in (group.first, *group.others)]
    return tuple(cards), tuple(remaining[:MAX_LINES])


def _card(group: FailureGroup) -> Card:
    failure = group.first
    numbered = list(enumerate(failure.steps, 1))
    bad = {one.number for one in bad_steps(failure)}
    # Long sequences fail at the end.
    kept = numbered[-_STEPS:]
    pictures: tuple[tuple[str, Markup], ...] = ()
    if failure.machine_info is not None:
        pictures = tuple(
            (one.title, draw_svg(failure.machine_info, one.owners, one.shared))
            for one in failure.pictures
        )
    return Card(
        failure,
        group.others,
        group.also(),
        tuple(_shown_step(number, step, bad=number in bad) for number, step in kept),
        pictures,
        both_ends(failure.stderr, _LOG),
        len(numbered) - len(kept),
    )


def _shown_step(number: int, step: ReportedCall, *, bad: bool) -> ShownStep:
    return ShownStep(
        number,
        step.operation,
        _format_value(without_machine(step.args)),
        "no answer" if step.answer is None else _format_value(step.answer),
        step.problems,
        _diff(step) if bad and step.expected is not None else (),
        bad,
        tuple(shorten(deed, _VALUE) for deed in step.before),
    )


def _format_value(value: Any) -> str:
    return shorten(pretty(value), _VALUE)


def _diff(step: ReportedCall) -> tuple[tuple[str, str], ...]:
    """Returns the changed lines with some context; an ellipsis marks omitted lines."""
    lines = diff_lines(step.expected, step.answer or {}, _DIFF_WIDTH)
    if len(lines) > _DIFF:
        left = f"{plural(len(lines) - _DIFF, 'more line')} in events.jsonl"
        lines = (*lines[:_DIFF], ("…", left))
    return tuple((mark, shorten(line, 2_000)) for mark, line in lines)


_MAX_DRAWN_CPUS = 8_000


def html(summary: Summary) -> str:
    """Renders the run as an HTML page."""
    style, script = package_file("report.css"), package_file("report.js")
    cards, remaining = failure_cards(summary)
    areas = [*summary.areas, *([summary.kind] if summary.fuzz else [])]
    return _TEMPLATE.render(
        style=style,
        script=script,
        summary=summary,
        outcomes=OUTCOMES,
        counts=counts_line(summary),
        wording=wording,
        links=tuple(_links(summary)),
        machines=summary.start.machines if summary.start else {},
        drawings=dict(_drawings(summary)),
        cases=_cases(summary),
        registry=_registry(summary),
        cards=cards,
        remaining=remaining,
        failed=len(all_failures(summary)),
        defects=_defects(summary),
        sides=_runs_by_baseline(summary),
        area_numbers={area: number for number, area in enumerate(areas)},
        machine_numbers={name: number for number, name in enumerate(summary.machines)},
    )


def _links(summary: Summary) -> Iterator[tuple[str, str]]:
    who = summary.start.implementation if summary.start else None
    for name, address in (("homepage", who.homepage), ("issues", who.issues)) if who else ():
        if address is not None and is_web_address(address):
            yield name, address


def is_web_address(address: str) -> bool:
    """Whether a URL from an implementation may become a link: only plain http or https."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc) and visible(address) == address


def _drawings(summary: Summary) -> Iterator[tuple[str, Markup]]:
    drawn = 0
    for name, machine in (summary.start.machines if summary.start else {}).items():
        drawn += machine.num_cores
        if drawn > _MAX_DRAWN_CPUS:
            return
        yield name, draw_svg(machine)


def _cases(summary: Summary) -> list[dict[str, Any]]:
    return [
        {"first": runs[0], "area": summary.area(runs[0]), "runs": runs}
        for runs in group_values((run.case, run) for run in summary.runs).values()
    ]


def _registry(summary: Summary) -> dict[str, list[ReportedRequirement]]:
    return group_values((one.area, one) for one in summary.requirements.values())


def _defects(summary: Summary) -> dict[str, list[CaseFinished]]:
    expected = ((run.defect or "unnamed defect", run) for run in summary.expected_failures)
    known = ((f"known: {run.signature}", run) for run in summary.known_failures)
    return group_values((*expected, *known))


def _runs_by_baseline(summary: Summary) -> dict[str, list[CaseFinished]]:
    taken = (
        (baseline_text(run.baseline_divergence), run)
        for run in summary.runs
        if run.baseline_divergence
    )
    return dict(sorted(group_values(taken).items()))


def _worst(tally: OutcomeTally) -> Outcome:
    return next(outcome for outcome in SYMBOLS if tally.of(outcome))


_ENVIRONMENT = environment()
_ENVIRONMENT.filters |= {
    "number": OUTCOMES.index,
    "bars": lambda tally: segments(tally.counts.items(), 3),
    "worst": _worst,
    "source": source,
    "baseline_text": baseline_text,
}
_ENVIRONMENT.globals |= {"symbols": SYMBOLS}
_TEMPLATE = _ENVIRONMENT.get_template("report.html.j2")
