"""The cards of a run's page: one for each cause, with its smallest failure in full."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import plural
from numaproof.reports.anchors import anchor
from numaproof.reports.consequences import leading_causes
from numaproof.reports.drawing_svg import draw_svg
from numaproof.reports.groups import causes
from numaproof.reports.markdown import issue
from numaproof.reports.story import bad_steps, both_ends, split_requirements
from numaproof.reports.untrusted_text import shorten
from numaproof.reports.values import diff_lines, group_values, pretty, without_machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from numaproof.protocol.events import ReportedCall, ReportedRequirement
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import Summary


ROOM = 6_000_000
"""Approximate maximum size of all cards, in characters; further failures are only listed."""

MAX_LINES = 5_000
"""Maximum number of lines outside cards."""

_MAX_RELATED = 200
"""Maximum number of causes that are examined for consequences."""

_EXAMPLES = 2
_VALUE, _DIFF, _LOG, _STEPS, _DIFF_WIDTH = 12_000, 500, 200, 60, 40
_LINE = 600


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
class FailureLine:
    """The runs of one case with one outcome, represented by a failure, or a fuzzing finding."""

    failure: Failure
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A cause, represented by its smallest failure.

    `number` counts from 1. `before` is the number of a cause to fix first, because this one may
    disappear with it, and `after` are the numbers of causes that may disappear with this one.
    `lines` lists the other failures, the examples first. `also` describes its other signatures.
    `left_out` counts omitted steps.
    """

    number: int
    group: FailureGroup
    before: int | None
    after: tuple[int, ...]
    examples: tuple[Failure, ...]
    lines: tuple[FailureLine, ...]
    also: str
    steps: tuple[ShownStep, ...]
    pictures: tuple[tuple[str, Markup], ...]
    stderr: str
    left_out: int
    issue: str

    @property
    def id(self) -> str:
        """The id of the card's element."""
        return anchor("cause", next(iter(self.group.signatures)))

    @property
    def failure(self) -> Failure:
        """The smallest failure."""
        return self.group.first

    @property
    def main_requirements(self) -> tuple[ReportedRequirement, ...]:
        """The violated requirements or, if they are unknown, the first ones of the case."""
        return split_requirements(self.failure)[0]

    @property
    def case_count(self) -> int:
        """The number of cases with this cause; each finding of a fuzz run counts as one."""
        return len({one.name or one.title for one in self.group.failures})

    @property
    def machine_count(self) -> int:
        """The number of machines with this cause."""
        return len({one.machine for one in self.group.failures})

    @property
    def size(self) -> int:
        """The approximate size of the card in characters."""
        drawn = sum(len(picture) for _, picture in self.pictures)
        steps = sum(
            len(step.args) + len(step.answer) + sum(40 + len(line) for _, line in step.diff)
            for step in self.steps
        )
        text = len(self.stderr) + len(self.issue) + len(self.failure.case_text)
        return 4_000 + drawn + steps + text + _LINE * len(self.lines)


def failure_cards(summary: Summary) -> tuple[tuple[Card, ...], tuple[FailureLine, ...]]:
    """Returns a card for each cause, and lines for the failures for which there was no room."""
    groups = causes(summary)
    leading = leading_causes(groups[:_MAX_RELATED])
    cards: list[Card] = []
    room = ROOM
    for number, group in enumerate(groups):
        card = _card(summary, number, group, leading)
        room -= card.size
        if room < 0:
            break
        cards.append(card)
    remaining = (_lines(group.failures) for group in groups[len(cards) :])
    return tuple(cards), tuple(chain.from_iterable(remaining))


def _lines(failures: Iterable[Failure]) -> tuple[FailureLine, ...]:
    """Groups failures by case and outcome; the first of each group represents it."""
    groups = group_values(
        ((one.name or (one.signature, one.title), one.outcome), one) for one in failures
    )
    return tuple(
        FailureLine(group[0], tuple(one.machine for one in group)) for group in groups.values()
    )


def _card(summary: Summary, place: int, group: FailureGroup, leading: Sequence[int | None]) -> Card:
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
    examples = group.examples(_EXAMPLES)
    others = (one for one in group.others if all(one is not example for example in examples))
    leader = leading[place] if place < len(leading) else None
    return Card(
        number=place + 1,
        group=group,
        before=None if leader is None else leader + 1,
        after=tuple(other + 1 for other, first in enumerate(leading) if first == place),
        examples=examples,
        lines=_lines((*examples, *others)),
        also=group.also(),
        steps=tuple(_shown_step(number, step, bad=number in bad) for number, step in kept),
        pictures=pictures,
        stderr=both_ends(failure.stderr, _LOG),
        left_out=len(numbered) - len(kept),
        issue=issue(summary, failure),
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
