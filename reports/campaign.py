"""What a campaign comes to, as files and for a terminal: the same bytes for the same summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import codec
from numaproof.reports.layout import plural
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.campaign import CampaignSummary, Finding
    from numaproof.protocol.events import Outcome

SUMMARY = "summary.json"

_LONGEST = 400
"""Characters of a message."""


def as_json(summary: CampaignSummary) -> bytes:
    """The summary for programs."""
    return msgspec.json.format(codec.encode(summary), indent=1) + b"\n"


def as_text(summary: CampaignSummary) -> str:
    """The summary for people, as lines."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: CampaignSummary) -> Iterator[str]:
    plan = summary.plan
    who = f"{plan.implementation.name} {plan.implementation.version}"
    yield f"{one_line(who, 80)}, {plural(len(plan.machines), 'machine')}"
    for name, tally in summary.configurations.items():
        yield f"  {name}: case runs {_counts(tally.cases)}; scenarios {_counts(tally.scenarios)}"
    if not summary.complete:
        yield f"INCOMPLETE: {plural(summary.missing, 'unit')} not done; the same command goes on."
    if not summary.findings:
        yield "Nothing was found." if summary.complete else "Nothing was found so far."
        return
    yield f"{plural(len(summary.findings), 'finding')}:"
    for finding in summary.findings:
        yield from _finding(finding)


def _finding(one: Finding) -> Iterator[str]:
    yield f"  {one.signature} {one.outcome.upper()} {one_line(one.subject, 80)}"
    yield f"    {one_line(one.message, _LONGEST)}"
    yield f"    {plural(one.count, 'time')}, first {one.first}"
    if one.reproduce:
        yield f"    {one_line(one.reproduce, _LONGEST)}"


def _counts(counts: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()) or "none"


def write_summary(summary: CampaignSummary, folder: Path) -> None:
    """Writes ``summary.json`` and ``summary.txt``; a reader sees the old one or the new one.

    Raises:
        OSError: a file can't be written.
    """
    for name, content in ((SUMMARY, as_json(summary)), ("summary.txt", as_text(summary).encode())):
        part = folder / f".{name}.part"
        part.write_bytes(content)
        part.replace(folder / name)
