"""One-line descriptions of differences, for tables of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.conformance.judging.finding import Finding


def parts(finding: Finding | None) -> tuple[str, str, str]:
    """Returns the aspect that differs and both sides, or empty texts."""
    return (finding.subject, finding.expected, finding.actual) if finding else ("", "", "")


def in_one_line(finding: Finding) -> str:
    """Returns a finding's message on one line."""
    found = finding.mismatch
    return f"{found.what}: expected {found.expected}, got {found.actual}" if found else str(finding)
