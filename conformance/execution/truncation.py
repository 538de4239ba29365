"""Limits the size of reported calls, because programs can write unlimited output."""

from __future__ import annotations

import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import plural
from numaproof.protocol.events import ReportedFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.conformance.judging.finding import Finding

MAX_SHOWN = 64 * 1024
"""The maximum number of characters in a string. Most nodes' checkpoint files are shorter."""

MAX_ITEMS = 10_000
"""The maximum number of items in a list or object."""


def truncate(value: Any) -> Any:
    """Shortens long strings, lists and objects, and reports the number of items left out."""
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        rest = value[MAX_SHOWN:]
        summed = zlib.crc32(rest.encode("utf-8", "surrogatepass"))
        left_out = plural(len(rest), "more character")
        return f"{value[:MAX_SHOWN]}... and {left_out} (CRC {summed:08x})"
    if isinstance(value, dict):
        more = len(value) - MAX_ITEMS
        made = {key: truncate(item) for key, item in islice(value.items(), MAX_ITEMS)}
        return made | {"...": f"and {more:,} more"} if more > 0 else made
    if isinstance(value, list | tuple):
        more = len(value) - MAX_ITEMS
        items = [truncate(item) for item in value[:MAX_ITEMS]]
        return [*items, f"... and {more:,} more"] if more > 0 else items
    return value


MAX_PROBLEMS = 50
"""The maximum number of problems shown per call."""

LONGEST_PROBLEM = 4000
"""The maximum length of a problem; enough for differing answers on large machines."""


def reported_problems(problems: Sequence[object]) -> tuple[str, ...]:
    """Formats the problems of a call for reports."""
    shown = tuple(cut(str(one)) for one in problems[:MAX_PROBLEMS])
    more = len(problems) - len(shown)
    return (*shown, f"... and {more:,} more") if more else shown


def reported_finding(finding: Finding | None, before: str = "") -> ReportedFinding | None:
    """Converts a finding for reports; `before` is prepended to its headline."""
    if finding is None:
        return None
    both, rule, requirement = finding.mismatch, cut(finding.rule), finding.requirement
    if both is None:
        return ReportedFinding(finding.source, rule, requirement=requirement)
    what = cut(f"{before}{both.what}")
    return ReportedFinding(finding.source, rule, what, both.expected, both.actual, requirement)


def reported_findings(problems: Sequence[Finding]) -> tuple[ReportedFinding, ...]:
    """Converts the findings of a call for reports."""
    return tuple(filter(None, map(reported_finding, problems[:MAX_PROBLEMS])))


def cut(text: str) -> str:
    """Shortens a message from or about a program."""
    more = len(text) - LONGEST_PROBLEM
    return f"{text[:LONGEST_PROBLEM]}... and {plural(more, 'more character')}" if more > 0 else text


def replace_text(value: Any, old: str, new: str) -> Any:
    """Replaces a substring in every string of a plain value."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: replace_text(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_text(item, old, new) for item in value]
    return value
