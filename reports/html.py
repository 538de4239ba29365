"""Renders a run as a self-contained HTML page that loads nothing.

Jinja escapes every value, and hidden characters (controls, direction marks) are made visible. The
content security policy allows only the page's own style and script, identified by hash, so even
markup that got past the escaping would be harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from numaproof.protocol.events import GOOD
from numaproof.reports import wording
from numaproof.reports.anchors import anchor
from numaproof.reports.drawing_svg import draw_svg, drawing_image
from numaproof.reports.failure_cards import MAX_LINES, failure_cards
from numaproof.reports.groups import counts_line
from numaproof.reports.pages import environment, package_file, page_script
from numaproof.reports.sources import sources
from numaproof.reports.story import all_failures
from numaproof.reports.summary import OUTCOMES
from numaproof.reports.untrusted_text import visible
from numaproof.reports.values import group_values, segments
from numaproof.reports.wording import SYMBOLS, baseline_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.protocol.events import CaseFinished, Outcome, ReportedRequirement
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import OutcomeTally, Summary


_MAX_DRAWN_CPUS = 1_500

_SLOWEST = 10
"""How many of the slowest cases the page lists."""

_NAMED = 3
"""How many machines a line names."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case on the page, with the machines on which it had each outcome."""

    case: CaseFinished
    area: str
    machines: Mapping[Outcome, Sequence[str]]
    seconds: float

    @property
    def is_green(self) -> bool:
        """Whether the case passed wherever it ran."""
        return self.machines.keys() == {"pass"}

    @property
    def total(self) -> int:
        """The number of case runs."""
        return sum(map(len, self.machines.values()))


def html(summary: Summary) -> str:
    """Renders the run as an HTML page."""
    style, script = package_file("report.css"), page_script()
    cards, remaining = failure_cards(summary)
    areas = [*summary.areas, *([summary.kind] if summary.fuzz else [])]
    cases = _cases(summary)
    lines = (*(line for card in cards for line in card.lines), *remaining[:MAX_LINES])
    linked = (*(card.failure for card in cards), *(line.failure for line in lines))
    return _TEMPLATE.render(
        style=style,
        script=script,
        summary=summary,
        outcomes=OUTCOMES,
        counts=counts_line(summary),
        wording=wording,
        links=tuple(_links(summary)),
        machines=summary.start.machines if summary.start else {},
        cited=summary.start.documents if summary.start else {},
        drawings=dict(_drawings(summary)),
        cases=[row for row in cases if not row.is_green],
        green_cases=[row for row in cases if row.is_green],
        slowest=sorted(cases, key=lambda row: -row.seconds)[:_SLOWEST],
        registry=_registry(summary),
        cards=cards,
        remaining=remaining[:MAX_LINES],
        left_out=sum(len(line.machines) for line in remaining[MAX_LINES:]),
        failed=len(all_failures(summary)),
        linked=set(map(_failure_id, linked)),
        defects=_defects(summary),
        sides=_runs_by_baseline(summary),
        area_numbers={area: number for number, area in enumerate(areas)},
        machine_numbers={name: number for number, name in enumerate(summary.machines)},
        named=_NAMED,
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


def _drawings(summary: Summary) -> Iterator[tuple[str, str]]:
    drawn = 0
    for name, machine in (summary.start.machines if summary.start else {}).items():
        drawn += machine.num_cores
        if drawn > _MAX_DRAWN_CPUS:
            return
        yield name, drawing_image(draw_svg(machine))


def _cases(summary: Summary) -> list[CaseRow]:
    return [
        CaseRow(
            case=runs[0],
            area=summary.area(runs[0]),
            machines=_by_outcome(runs),
            seconds=sum(run.seconds for run in runs),
        )
        for runs in group_values((run.case, run) for run in summary.runs).values()
    ]


def _by_outcome(runs: Sequence[CaseFinished]) -> dict[Outcome, list[str]]:
    """Returns the machines by outcome, the worst outcome first."""
    found = group_values((run.outcome, run.machine) for run in runs)
    return {outcome: found[outcome] for outcome in SYMBOLS if outcome in found}


def _failure_id(failure: Failure) -> str:
    """The id of a failure: its case and machine, or what fuzzing found."""
    if failure.name:
        return anchor("failure", failure.name, failure.machine)
    return anchor("failure", failure.signature, failure.title)


def _filter_address(area: str, machine: str) -> str:
    """Returns a link to the page, filtered by area and machine."""
    return f"?{urlencode({'area': area, 'machine': machine})}#filter"


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
    "sources": sources,
    "baseline_text": baseline_text,
    "failure_id": _failure_id,
    "machine_number": lambda name, numbers: numbers.get(name, ""),
}
_ENVIRONMENT.globals |= {
    "anchor": anchor,
    "filter_address": _filter_address,
    "good": GOOD,
    "symbols": SYMBOLS,
}
_TEMPLATE = _ENVIRONMENT.get_template("report.html.j2")
