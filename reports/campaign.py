"""Formats the result of a campaign for files and terminals, deterministically."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import msgspec

from numaproof.inputs.plurals import plural
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol import codec
from numaproof.protocol.events import sentence_of
from numaproof.reports.html import html
from numaproof.reports.terminal import Bar
from numaproof.reports.untrusted_text import one_line, visible
from numaproof.reports.wording import short_lines
from numaproof.workdir.output_files import clear_partials, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.protocol.campaign import CampaignFinding, CampaignSummary
    from numaproof.protocol.events import Outcome
    from numaproof.reports.summary import Summary


SUMMARY = "summary.json"
_TEXT = "summary.txt"

_LONGEST = 400
"""Maximum length of a message."""

_MAX_NOTES = 20


def as_json(summary: CampaignSummary) -> bytes:
    """Formats the summary as JSON."""
    return msgspec.json.format(codec.encode(summary), indent=1) + b"\n"


def as_text(summary: CampaignSummary, folder: Path | None = None) -> str:
    """Formats the summary as text.

    Args:
        summary: the summary.
        folder: the campaign's folder, to prepend to the names of case files; None to leave the
            names relative to it.
    """
    return "\n".join(_lines(summary, folder)) + "\n"


def notes_text(notes: Sequence[str]) -> str:
    """Formats notes that don't count as findings; empty if there are none."""
    if not notes:
        return ""
    lines = [f"  {one_line(one, _LONGEST)}" for one in notes[:_MAX_NOTES]]
    if (left := len(notes) - _MAX_NOTES) > 0:
        lines.append(f"  and {left} more in events.jsonl")
    return "\n".join((f"{plural(len(notes), 'note')}, not counted as findings:", *lines)) + "\n"


def _lines(summary: CampaignSummary, folder: Path | None) -> Iterator[str]:
    plan = summary.plan
    who = f"{plan.implementation.name} {plan.implementation.version}"
    yield f"{one_line(who, 80)}, {plural(len(plan.machines), 'machine')}"
    for name, tally in summary.configurations.items():
        yield f"  {name}: case runs {_counts(tally.cases)}; scenarios {_counts(tally.scenarios)}"
    if coverage := summary.coverage:
        kept = f", {plural(coverage.kept_scenarios, 'scenario')} kept" if plan.is_guided else ""
        yield f"Coverage: {plural(len(coverage.blocks), 'block')} reached{kept}"
    if plan.bound_covers:
        yield f"Bound: {'; '.join(plan.bound_covers)}"
    if not summary.complete:
        yield (
            f"INCOMPLETE: {plural(summary.missing, 'unit')} left; run the same command to resume."
        )
        if summary.message:
            yield f"  {one_line(summary.message, _LONGEST)}"
    if not summary.findings:
        yield "No findings." if summary.complete else "No findings so far."
        return
    yield f"{plural(len(summary.findings), 'finding')}:"
    for finding in summary.findings:
        yield from _finding(finding, folder)


def _finding(finding: CampaignFinding, folder: Path | None) -> Iterator[str]:
    yield f"  {finding.signature} {finding.outcome.upper()} {one_line(finding.subject, 80)}"
    yield from (
        f"    {line}"
        for line in short_lines(sentence_of(finding.message, finding.finding), _LONGEST)
    )
    yield f"    {plural(finding.count, 'time')}, first {finding.first}"
    if finding.reproduce:
        # Not shortened, so that it can be copied.
        yield f"    {visible(_reproduce(finding, folder))}"


def _reproduce(finding: CampaignFinding, folder: Path | None) -> str:
    """Returns the command that reproduces a finding, with the path of its file in the folder."""
    if folder is None or not finding.file:
        return finding.reproduce
    named = quote_words([str(folder / finding.file)])
    return finding.reproduce.replace(f" {quote_words([finding.file])} ", f" {named} ", 1)


def _counts(counts: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()) or "none"


def write_summary(summary: CampaignSummary, folder: Path) -> None:
    """Writes ``summary.json`` and ``summary.txt``, each atomically.

    Raises:
        OSError: a file cannot be written.
    """
    text = visible(as_text(summary)).encode()
    for name, content in ((SUMMARY, as_json(summary)), (_TEXT, text)):
        write_file(folder / name, content)


def write_pages(runs: Iterable[Summary], folder: Path) -> None:
    """Writes a page like ``report-1.37-check.html`` for each release and kind of run.

    Raises:
        OSError: a file cannot be written.
    """
    for run in runs:
        kubernetes = run.start.kubernetes if run.start else ""
        write_file(folder / f"report-{kubernetes}-{run.kind}.html", visible(html(run)))


def clear_summary(folder: Path) -> None:
    """Removes an earlier summary and its pages, so that nobody mistakes them for new ones.

    Raises:
        OSError: a file cannot be removed.
    """
    for file in (folder / SUMMARY, folder / _TEXT, *folder.glob("report-*-*.html")):
        file.unlink(missing_ok=True)
    clear_partials(folder)


_SECONDS_BETWEEN = 10.0
_MINUTE, _HOUR = 60, 3600


@dataclass(frozen=True)
class Standing:
    """The state of a campaign.

    Attributes:
        units_done: the number of finished units, including those of earlier runs.
        total: the total number of units.
        failures: the number of failed case runs and scenarios.
        signatures: the number of distinct failures.
        here: the number of units finished by this run.
        seconds: time since this run started its first unit.
    """

    units_done: int
    total: int
    failures: int
    signatures: int
    here: int
    seconds: float

    @property
    def rate(self) -> float:
        """Units per second in this run."""
        return self.here / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The estimated number of seconds until the end; None while unknown."""
        return (self.total - self.units_done) / self.rate if self.rate else None

    def __str__(self) -> str:
        parts = [f"{self.failures:,} failed"]
        if self.failures:
            parts[0] += f" ({self.signatures:,} distinct)"
        parts.append(f"{self.rate:.1f} units/s")
        if self.seconds_left is not None:
            parts.append(f"{_clock(self.seconds_left)} left")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}:{whole % _MINUTE:02}"
    return f"{whole // _HOUR}:{whole % _HOUR // _MINUTE:02}:{whole % _MINUTE:02}"


class CampaignProgress(Bar):
    """Shows the progress of a campaign; a context manager.

    Args:
        stream: where to write.
        environment: the environment variables that decide between live and plain output (default:
            the process's own).
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(stream, environment, "units")
        self._next = 0.0

    def show(self, standing: Standing) -> None:
        """Shows the progress, live or as plain lines every 10 seconds and at the end."""
        if self.live:
            self.move(standing.units_done, standing.total, str(standing))
        elif standing.seconds >= self._next or standing.units_done == standing.total:
            self._next = standing.seconds + _SECONDS_BETWEEN
            self.line(f"{standing.units_done:,} of {plural(standing.total, 'unit')}, {standing}")
