"""Failures as cards of the HTML page: one of each kind in full, lines for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import plural
from numaproof.reports.drawing import draw_svg
from numaproof.reports.groups import causes
from numaproof.reports.logs import both_ends
from numaproof.reports.story import bad_steps
from numaproof.reports.untrusted import shortened
from numaproof.reports.values import diff_lines, pretty, without_machine

if TYPE_CHECKING:
    from markupsafe import Markup

    from numaproof.protocol.events import ReportedCall
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import Summary

ROOM = 6_000_000
"""Approximate number of characters for all cards together; further failures get a line."""

MOST_LINES = 5_000
"""Maximum number of failures that get a line."""

_VALUE, _DIFF, _CONTEXT, _LOG, _STEPS, _DIFF_WIDTH = 12_000, 500, 3, 200, 60, 40
_LINE = 500


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A call as the page shows it: formatted JSON, and the lines of the difference.

    `bad` is whether the failure involves this call, `before` what the harness did before it.
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
    """A cause by its smallest failure, with its steps formatted and its pictures drawn.

    `others` holds the other failures by this cause, `also` how else it shows, `left_out` counts
    omitted steps.
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
    """A card for each cause, and the failures that did not fit."""
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
    return tuple(cards), tuple(remaining[:MOST_LINES])


def _card(group: FailureGroup) -> Card:
    failure = group.first
    numbered = list(enumerate(failure.steps, 1))
    bad = {one.number for one in bad_steps(failure)}
    # A long sequence fails at its end.
    kept = numbered[-_STEPS:]
    pictures: tuple[tuple[str, Markup], ...] = ()
    if failure.drawn is not None:
        pictures = tuple(
            (one.title, draw_svg(failure.drawn, one.owners, one.shared)) for one in failure.pictures
        )
    return Card(
        failure,
        group.others,
        group.also(),
        tuple(_shown(number, step, bad=number in bad) for number, step in kept),
        pictures,
        both_ends(failure.stderr, _LOG),
        len(numbered) - len(kept),
    )


def _shown(number: int, step: ReportedCall, *, bad: bool) -> ShownStep:
    diff: tuple[tuple[str, str], ...] = ()
    if bad and step.expected is not None:
        diff = _near_changes(diff_lines(step.expected, step.answer or {}, _DIFF_WIDTH))
    return ShownStep(
        number,
        step.operation,
        _laid_out(without_machine(step.args)),
        "no answer" if step.answer is None else _laid_out(step.answer),
        step.problems,
        diff,
        bad,
        tuple(shortened(deed, _VALUE) for deed in step.before),
    )


def _laid_out(value: Any) -> str:
    return shortened(pretty(value), _VALUE)


def _near_changes(lines: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The changed lines with a little context; gaps are marked by dots."""
    changed = [number for number, (mark, _) in enumerate(lines) if mark != " "]
    near = {number + offset for number in changed for offset in range(-_CONTEXT, _CONTEXT + 1)}
    kept: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        if number in near:
            kept.append(line)
        elif not kept or kept[-1][0] != "…":
            kept.append(("…", ""))
    if len(kept) > _DIFF:
        kept = [*kept[:_DIFF], ("…", f"{plural(len(kept) - _DIFF, 'more line')} in events.jsonl")]
    return tuple((mark, shortened(line, 2_000)) for mark, line in kept)
