"""Formats the diagnosis of `numaproof doctor`: the dialogue, with problems below each line."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.text import Text

from numaproof.inputs.plurals import plural
from numaproof.protocol.events import sentence_of
from numaproof.reports.untrusted_text import one_line, visible
from numaproof.reports.wording import short_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.diagnosis import Diagnosis, Exchange, Finding

PLAIN_WIDTH = 150
"""Width of requests and answers without a terminal, in columns."""

_INDENT = 9
_MAX_LINES = 4
_LOG_LINES = 8
_WHOLE = 1 << 20
"""More columns and lines than anything in a diagnosis has."""


def diagnosis_lines(
    diagnosis: Diagnosis, width: int, max_lines: int = _MAX_LINES
) -> Iterator[Text]:
    """Yields the lines of a diagnosis.

    Shortens messages to `width` columns, and responses of several lines to `max_lines`.
    """
    told: set[str] = set()
    for exchange in diagnosis.exchanges:
        yield from _exchange(exchange, told, width - _INDENT, max_lines)
    if diagnosis.not_claimed:
        yield Text(f"not claimed, so not tested: {', '.join(diagnosis.not_claimed)}", "dim")
    yield Text()
    yield verdict(diagnosis)
    yield Text("What to do next:", "bold")
    steps = zip_longest(diagnosis.next_steps, diagnosis.next_findings)
    for number, step in enumerate(steps, 1):
        first, *sides = short_lines(sentence_of(*step), 400)
        yield Text(f"  {number}. {first}")
        yield from (Text(f"     {line}") for line in sides)


def transcript(diagnosis: Diagnosis, harness: str, platform: str) -> str:
    """Returns the whole dialogue as text, to be attached to an issue.

    Args:
        diagnosis: the dialogue.
        harness: the harness and its version.
        platform: the operating system, the processor and Python.
    """
    head = f"{harness} doctor {one_line(diagnosis.command, _WHOLE)}\n{platform}\n\n"
    return head + "".join(f"{line}\n" for line in diagnosis_lines(diagnosis, _WHOLE, _WHOLE))


def verdict(diagnosis: Diagnosis) -> Text:
    """Returns the outcome in one line."""
    name = one_line(diagnosis.name, 40) or "the program"
    calls = plural(sum(bool(one.request) for one in diagnosis.exchanges), "request")
    took = f"{calls} in {diagnosis.seconds:.1f} s"
    if diagnosis.healthy:
        return Text(f"✓ {name} is healthy: {took}", "bold green")
    wrong = {
        one.cause for exchange in diagnosis.exchanges for one in exchange.findings if not one.advice
    }
    return Text(f"✗ {name}: {plural(len(wrong), 'problem')}, {took}", "bold red")


def _exchange(
    exchange: Exchange, shown_problems: set[str], room: int, max_lines: int
) -> Iterator[Text]:
    took = f"{exchange.seconds * 1000:.0f} ms" if exchange.request else ""
    head = Text(f"{exchange.number:>3}  ")
    head.append(exchange.step, "bold")
    head.append(f"  {exchange.about}")
    if took:
        head.append(f"  {took}", "dim")
    yield head
    if exchange.request:
        yield Text(f"     → {one_line(exchange.request, room)}", "dim")
    for line in exchange.response.splitlines()[:max_lines]:
        yield Text(f"     ← {one_line(line, room)}", "dim")
    for finding in exchange.findings:
        yield from _finding(finding, shown_problems, room)


def _finding(finding: Finding, shown_problems: set[str], room: int) -> Iterator[Text]:
    style, mark = ("yellow", "!") if finding.advice else ("red", "✗")
    again = finding.wrong in shown_problems
    shown_problems.add(finding.wrong)
    after = f"after {finding.after}: " if finding.after else ""
    told_before = " (again)" if again else ""
    wrong, *sides = short_lines(finding.sentence, 400)
    yield Text(f"     {mark} {after}{wrong}{told_before}", style)
    if again:
        return
    yield from (Text(f"     {line}", style) for line in sides)
    if finding.right:
        yield Text(f"       right: {one_line(finding.right, 400)}")
    if finding.log.strip():
        yield Text("       the end of its standard error:")
        for line in visible(finding.log).strip().splitlines()[-_LOG_LINES:]:
            yield Text(f"       │ {one_line(line, room)}", "dim")
