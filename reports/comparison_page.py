"""Renders a comparison of two runs as a self-contained HTML page, in the style of a run's page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.events import GOOD
from numaproof.reports.anchors import anchor
from numaproof.reports.groups import likeness
from numaproof.reports.pages import environment, package_file, page_script
from numaproof.reports.run_comparison import (
    changes_by_kind,
    conclusion,
    outcomes_text,
    run_descriptions,
)
from numaproof.reports.summary import OUTCOMES
from numaproof.reports.values import group_values
from numaproof.reports.wording import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.reports.json_output import ChangedRun, RunComparison

_SLOWER = "Slower"

_NAMED = 3
"""How many machines a line names."""

_VERDICTS = {0: "passed", 1: "failed", 3: "incomplete"}
"""The colour of the page, by exit code."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A case that changed in the same way on some machines, or what fuzzing found."""

    id: str
    change: ChangedRun
    machines: tuple[str, ...]

    @property
    def outcomes(self) -> str:
        return outcomes_text(self.change)


@dataclass(frozen=True, slots=True)
class _Card:
    """Changes of one kind; if they fail, for one cause."""

    title: str
    cause: str
    count: int
    lines: tuple[_Line, ...]

    @property
    def id(self) -> str:
        return anchor("changes", self.title, *([self.cause] if self.cause else []))

    @property
    def first(self) -> ChangedRun:
        return self.lines[0].change

    @property
    def is_failing(self) -> bool:
        return self.first["after"] not in (*GOOD, None)


def comparison_html(comparison: RunComparison) -> str:
    """Renders a comparison as an HTML page."""
    lists = tuple(changes_by_kind(comparison))
    every = [one for _, changes in lists for one in changes]
    present = {one["after"] or one["before"] for one in every}
    machines = dict.fromkeys(one["machine"] for one in every)
    return _TEMPLATE.render(
        style=package_file("report.css"),
        script=page_script(),
        verdict=_VERDICTS[comparison["exit_code"]],
        conclusion=conclusion(comparison),
        descriptions=run_descriptions(comparison),
        runs={name: comparison[name] for name in ("before", "after")},
        cards=tuple(card for title, changes in lists for card in _cards(title, changes)),
        outcomes=[outcome for outcome in OUTCOMES if outcome in present],
        machine_numbers={name: number for number, name in enumerate(machines)},
        named=_NAMED,
    )


def _cards(title: str, changes: Sequence[ChangedRun]) -> Iterator[_Card]:
    causes = group_values((_cause(title, one), one) for one in changes)
    for cause, alike in sorted(causes.items(), key=lambda item: -len(item[1])):
        yield _Card(title, cause, len(alike), tuple(_lines(title, alike)))


def _cause(title: str, change: ChangedRun) -> str:
    """Returns what changes of this kind are grouped by: nothing, unless they fail."""
    outcome = change["after"]
    if outcome is None or outcome in GOOD or title == _SLOWER:
        return ""
    return change["signature"] or likeness(change["case"], outcome, change["message"])


def _lines(title: str, changes: Sequence[ChangedRun]) -> Iterator[_Line]:
    alike = group_values(
        ((one["case"] or one["title"], one["before"], one["after"]), one) for one in changes
    )
    # A case run may both fail and be slower.
    kind = "slower" if title == _SLOWER else "failure"
    for group in alike.values():
        first = group[0]
        found = first["signature"], first["title"]
        names = (first["case"], first["machine"]) if first["case"] else found
        yield _Line(anchor(kind, *names), first, tuple(one["machine"] for one in group))


_ENVIRONMENT = environment()
_ENVIRONMENT.filters |= {"number": OUTCOMES.index}
_ENVIRONMENT.globals |= {"anchor": anchor, "symbols": SYMBOLS}
_TEMPLATE = _ENVIRONMENT.get_template("comparison.html.j2")
