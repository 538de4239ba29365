"""Renders the summary that a terminal shows at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numaproof.inputs.plurals import plural
from numaproof.protocol.events import headline, sentence_of
from numaproof.reports import wording
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.groups import causes, verdict_line
from numaproof.reports.sources import citation
from numaproof.reports.story import (
    HarnessStep,
    both_ends,
    split_requirements,
    story_steps,
)
from numaproof.reports.untrusted_text import one_line, shorten, visible
from numaproof.reports.values import compact, without_machine
from numaproof.reports.wording import SYMBOLS, columns, short_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import RenderableType

    from numaproof.protocol.events import Sentence
    from numaproof.reports.json_output import Verdict
    from numaproof.reports.story import BadStep, Failure
    from numaproof.reports.summary import Summary

MAX_FAILURES = 10
"""Maximum number of causes shown, each with its smallest failure."""

_COLUMN_STYLES = ("green", "bold red", "bold magenta", "dim", "yellow", "yellow")
_VERDICT_STYLES: Mapping[Verdict, str] = {
    "passed": "bold green",
    "failed": "bold red",
    "incomplete": "bold yellow",
    "nothing tested": "bold yellow",
}
_VALUE, _TITLE, _LINES, _NAMES = 400, 600, 6, 12
_LOG = 2 * _LINES
_GAP = 2


def summary_parts(
    summary: Summary, width: int, reports: str, *, with_failures: bool = True
) -> Iterator[RenderableType]:
    """Yields the parts of the summary, to be printed with `print_part`.

    Args:
        summary: the summary to show.
        width: maximum width of drawings, in columns.
        reports: the folder of the reports; empty if there is none.
        with_failures: whether to show the failures by cause.
    """
    groups = causes(summary) if with_failures else ()
    for group in groups[:MAX_FAILURES]:
        yield Text()
        yield from _failure(group.first, width)
        for more in (group.also(), group.elsewhere(_NAMES)):
            if more:
                yield Padding(Text(more, "bold"), (0, 0, 0, 2))
    if left := groups[MAX_FAILURES:]:
        runs = plural(sum(group.size for group in left), "failure")
        yield Text(f"\n{runs} with {plural(len(left), 'more cause')} in the reports.")
    if summary.areas:
        yield Text()
        yield _areas(summary)
    yield from _expected(summary)
    yield from (Text(f"{side}: {count}", "dim") for side, count in wording.baseline_counts(summary))
    yield from _by_chance(summary)
    yield from _coverage_lines(summary)
    claims = wording.claims_lines(summary, brief=True)
    yield from (Text(one_line(line, _VALUE), "dim") for line in claims)
    yield from _circumstances(summary)
    yield from (Text(f"Incomplete run: {visible(gap)}", "bold yellow") for gap in summary.gaps)
    yield from (
        Text(one_line(line, _VALUE), "bold yellow") for line in wording.leftover_lines(summary)
    )
    if summary.verdict == "nothing tested":
        yield Text("Nothing was tested: no case ran, or none is supported.", "bold yellow")
    yield Text(
        f"{verdict_line(summary)} in {summary.seconds:.1f} s", _VERDICT_STYLES[summary.verdict]
    )
    if reports:
        yield _whole("Reports: ", reports)


def _circumstances(summary: Summary) -> Iterator[Text]:
    if line := wording.budget_line(summary):
        yield Text(line, "yellow")
    for name, value in wording.surroundings(summary):
        yield Text(f"{one_line(name, 60)} {one_line(value, _VALUE)}", "dim")


def _areas(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False)
    table.add_column("Area", footer="all")
    whole = columns(summary.tally, summary.tally)
    for (name, count), style in zip(whole, _COLUMN_STYLES, strict=False):
        table.add_column(name, justify="right", footer=f"{count or '-'}", style=style)
    table.add_column("all", justify="right", footer=str(summary.tally.total))
    for area, tally in summary.areas.items():
        counts = [f"{count or '-'}" for _, count in columns(tally, summary.tally)]
        table.add_row(Text(one_line(area, 40)), *counts, str(tally.total))
    return table


def _expected(summary: Summary) -> Iterator[Text]:
    for name, count in wording.expected(summary).items():
        yield Text(f"{SYMBOLS['expected failure']} expected failure {name}: {count}", "yellow")
    causes = Counter(run.signature for run in summary.known_failures)
    for name, count in causes.items():
        told = one_line(name, _VALUE)
        yield Text(f"{SYMBOLS['known failure']} known failure {told}: {count}", "yellow")
    for found in summary.known_examples[:_NAMES]:
        told = one_line(found.signature, _VALUE)
        yield Text(f"{SYMBOLS['known failure']} known failure {told}", "yellow")
        lines = short_lines(found.reason or sentence_of(found.message, found.finding), _VALUE)
        yield from (Text(f"  {line}") for line in lines)
        if found.file:
            yield _whole("  case file: ", found.file)
    if (left := len(summary.known_examples) - _NAMES) > 0:
        yield Text(f"{plural(left, 'more known failure')} in the reports.", "yellow")


def _by_chance(summary: Summary) -> Iterator[Text]:
    for one in summary.by_chance[:_NAMES]:
        where = f"answer differs between runs: {one.scenario}, call {one.call}: "
        sentence = sentence_of(f"{where}{one.message}", one.finding and one.finding.within(where))
        yield from (Text(line, "yellow") for line in short_lines(sentence, _VALUE))
    if (left := len(summary.by_chance) - _NAMES) > 0:
        yield Text(f"{left} more of these are in the reports.", "yellow")


def _coverage_lines(summary: Summary) -> Iterator[RenderableType]:
    if summary.coverage is None or not summary.coverage.examples:
        return
    yield Text(f"\nCovered in {plural(summary.coverage.examples, 'example')}:", "bold")
    table = Table.grid(padding=(0, _GAP))
    for subject, shown in wording.coverage_lines(summary.coverage):
        table.add_row(Text(f"  {one_line(subject, 40)}", "dim"), Text(one_line(shown, 2_000)))
    yield table


def _failure(failure: Failure, width: int) -> Iterator[RenderableType]:
    where = f"{failure.name} on {failure.machine}" if failure.name else failure.title
    style = wording.STYLES[failure.outcome]
    head = Text(f"{SYMBOLS[failure.outcome]} {failure.outcome.upper()}  ", style)
    yield head.append(one_line(where, _TITLE), "bold")
    yield from _indent(_body(failure, width - 2))
    yield from _commands(failure)


def transcript_details(failure: Failure, width: int) -> Iterator[RenderableType]:
    """Yields what a transcript of a failed run doesn't show."""
    yield from _indent(_requirements(failure))
    yield from _indent(_evidence(failure, width - 2))
    yield from _commands(failure)


def _indent(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    return (Padding(part, (0, 0, 0, 2)) for part in parts)


def _commands(failure: Failure) -> Iterator[Text]:
    # Not padded, because padding would wrap these lines, which users copy.
    if failure.file:
        yield _whole("  case file: ", failure.file)
    if failure.reproduce:
        yield _whole("  reproduce: ", failure.reproduce)


def _body(failure: Failure, width: int) -> Iterator[RenderableType]:
    if failure.name:
        yield Text(one_line(failure.title, _TITLE))
    yield from _requirements(failure)
    if failure.extra_sentence:
        yield from _problem(failure.extra_sentence)
    for told in story_steps(failure):
        if isinstance(told, HarnessStep):
            yield Text(one_line(str(told), _VALUE), "italic")
        else:
            yield from _step(told)
    if failure.baseline_divergence:
        yield Text(
            f"before: {one_line(wording.baseline_text(failure.baseline_divergence), _TITLE)}", "dim"
        )
    yield from _evidence(failure, width)


def _requirements(failure: Failure) -> Iterator[Text]:
    main, others = split_requirements(failure)
    before = ""
    for requirement in main:
        said = Text(f"{visible(requirement.id)}  ", "cyan")
        said.append(f"{one_line(requirement.statement, 300)} ", "default")
        same = requirement.document == before
        cited = requirement.section if same else citation(requirement, failure.documents)
        before = requirement.document
        yield said.append(visible(cited), "dim")
    if others:
        yield Text(one_line(others, _TITLE), "dim")


def _evidence(failure: Failure, width: int) -> Iterator[RenderableType]:
    """The program's standard error and drawings of the machine."""
    if failure.stderr:
        yield Text(f"{failure.log_name}:", "dim")
        yield Text(both_ends(failure.stderr, _LOG))
    if failure.machine_info is not None and failure.pictures:
        both = tuple(one.title for one in failure.pictures) == _BOTH_SIDES
        pictures = failure.pictures if both else failure.pictures[-1:]
        room = (width - _GAP * (len(pictures) - 1)) // len(pictures)
        beside = Table.grid(*("" for _ in pictures), padding=(0, _GAP))
        beside.add_row(*(Text(one_line(one.title, 120), "italic") for one in pictures))
        drawn = (
            drawn_text(failure.machine_info, one.owners, one.shared, width=room) for one in pictures
        )
        beside.add_row(*drawn)
        yield beside


def _whole(label: str, text: str) -> Text:
    """Returns a line that is never wrapped or cropped."""
    return Text(label, "dim", no_wrap=True, overflow="ignore").append(visible(text), "bold not dim")


_BOTH_SIDES = ("expected", "got")
"""The titles of pictures that are shown side by side."""


def _step(bad: BadStep) -> Iterator[RenderableType]:
    step, found = bad.step, bad.differences
    args = one_line(compact(without_machine(step.args)), _VALUE)
    yield Text(f"step {bad.number}, {step.operation} {args}")
    for problem in step.sentences:
        yield from (Padding(line, (0, 0, 0, 2)) for line in _problem(problem))
    for one in found[:_LINES]:
        yield Text(f"  {one_line(one.path, 120)}")
        yield Text(f"    {'expected':8} {one_line(one.expected, _VALUE)}", "green")
        yield Text(f"    {'got':8} {one_line(one.actual, _VALUE)}", "red")
    if len(found) > _LINES:
        yield Text(f"  {plural(len(found) - _LINES, 'more difference')} in the reports")
    if bad.answer:
        yield Text(f"    answer   {one_line(bad.answer, _VALUE)}")


def _problem(sentence: Sentence) -> Iterator[Text]:
    yield Text(_few_lines(headline(sentence)), "bold")
    for line, style in zip(wording.side_lines(sentence, _VALUE), ("green", "red"), strict=False):
        yield Text(line, style)


def _few_lines(text: str) -> str:
    return "\n".join(shorten(text, 4000).strip().split("\n")[:_LINES])
