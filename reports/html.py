"""The run as a self-contained HTML page: no network, no fonts, nothing to install.

Jinja escapes every value, and hidden characters (controls, direction marks) are made visible. The
page's content security policy allows only its own style and script, by hash, so text that got
through as markup after all could do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markupsafe import Markup

from numaproof.reports.drawing import draw_svg
from numaproof.reports.headline import counts_line
from numaproof.reports.html_failures import failure_cards
from numaproof.reports.pages import environment, own_file, source_hash
from numaproof.reports.story import all_failures, source
from numaproof.reports.summary import OUTCOMES
from numaproof.reports.untrusted import visible
from numaproof.reports.wording import (
    SYMBOLS,
    VERDICTS,
    claims_lines,
    left_lines,
    reached_lines,
    setting,
    taken_side,
    untested_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import Outcome, ReportedRequirement
    from numaproof.reports.summary import OutcomeTally, Summary

_MOST_DRAWN_CPUS = 8_000


def html(summary: Summary) -> str:
    """The run as an HTML page."""
    style, script = own_file("report.css"), own_file("report.js")
    cards, remaining = failure_cards(summary)
    return _TEMPLATE.render(
        style=Markup(style),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        summary=summary,
        outcomes=OUTCOMES,
        verdict=VERDICTS[summary.verdict],
        counts=counts_line(summary),
        setting=setting(summary),
        untested=untested_line(summary),
        claims=claims_lines(summary),
        left=left_lines(summary),
        links=tuple(_links(summary)),
        machines=summary.started.machines if summary.started else {},
        drawings=dict(_drawings(summary)),
        cases=_cases(summary),
        registry=_registry(summary),
        reached=reached_lines(summary.reached) if summary.reached else (),
        cards=cards,
        remaining=remaining,
        failed=len(all_failures(summary)),
        defects=_defects(summary),
        sides=_sides(summary),
        area_numbers={area: number for number, area in enumerate(_areas(summary))},
        machine_numbers={name: number for number, name in enumerate(summary.machines)},
    )


def _links(summary: Summary) -> Iterator[tuple[str, str]]:
    who = summary.started.implementation if summary.started else None
    for name, address in (("homepage", who.homepage), ("issues", who.issues)) if who else ():
        if address is not None and is_web_address(address):
            yield name, address


def is_web_address(address: str) -> bool:
    """Whether an address from an implementation may become a link: plain http or https."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc) and visible(address) == address


def _areas(summary: Summary) -> list[str]:
    return [*summary.areas, *([summary.kind] if summary.fuzz else [])]


def _drawings(summary: Summary) -> Iterator[tuple[str, Markup]]:
    """Drawings of the machines without owners, up to the limit for one page."""
    drawn = 0
    for name, machine in (summary.started.machines if summary.started else {}).items():
        drawn += machine.num_cores
        if drawn > _MOST_DRAWN_CPUS:
            return
        yield name, draw_svg(machine)


def _cases(summary: Summary) -> list[dict[str, Any]]:
    """One row per case, with its runs as pairs of a machine and an outcome."""
    rows: dict[str, dict[str, Any]] = {}
    for run in summary.runs:
        row = rows.setdefault(
            run.case,
            {
                "case": run.case,
                "title": run.title,
                "area": summary.area(run),
                "requirements": run.requirements,
                "runs": [],
            },
        )
        row["runs"].append((run.machine, run.outcome))
    return list(rows.values())


def _registry(summary: Summary) -> dict[str, list[ReportedRequirement]]:
    """The requirements by area, both in the order of the registry."""
    areas: dict[str, list[ReportedRequirement]] = {}
    for one in summary.requirements.values():
        areas.setdefault(one.area, []).append(one)
    return areas


def _defects(summary: Summary) -> dict[str, list[str]]:
    """Where each named defect, or known failure, was seen."""
    found: dict[str, list[str]] = {}
    for run in summary.expected_failures:
        found.setdefault(run.defect or "unnamed defect", []).append(f"{run.case} on {run.machine}")
    for run in summary.known_failures:
        found.setdefault(f"known: {run.signature}", []).append(f"{run.case} on {run.machine}")
    return found


def _sides(summary: Summary) -> dict[str, list[str]]:
    """Where each side was taken that kubelets and their documents part into."""
    found: dict[str, list[str]] = {}
    for run in summary.runs:
        if run.parted:
            found.setdefault(taken_side(run.parted), []).append(f"{run.case} on {run.machine}")
    return dict(sorted(found.items()))


def _number(outcome: Outcome) -> int:
    return OUTCOMES.index(outcome)


def _bars(tally: OutcomeTally) -> list[tuple[Outcome, int, str, str]]:
    """The segments of a bar: outcome, count, start and width in percent."""
    bars, at = [], 0
    for outcome, count in tally.counts.items():
        start, width = 100 * at / tally.total, 100 * count / tally.total
        bars.append((outcome, count, f"{start:.3f}", f"{width:.3f}"))
        at += count
    return bars


def _worst(tally: OutcomeTally) -> Outcome:
    """The worst outcome of a tally, which sets its colour."""
    order: tuple[Outcome, ...] = (
        "fail",
        "missing expected failure",
        "nondeterministic",
        "missing known failure",
        "fault",
        "crash",
        "time-out",
        "protocol error",
        "not run",
        "known failure",
        "expected failure",
        "pass",
        "unsupported",
    )
    return next(outcome for outcome in order if tally.of(outcome))


_ENVIRONMENT = environment()
_ENVIRONMENT.filters |= {
    "number": _number,
    "bars": _bars,
    "worst": _worst,
    "source": source,
    "taken_side": taken_side,
}
_ENVIRONMENT.globals |= {"symbols": SYMBOLS}
_TEMPLATE = _ENVIRONMENT.get_template("report.html.j2")
