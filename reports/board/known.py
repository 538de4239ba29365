"""A file of known failures to start from: what is known on a board of an implementation."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import yaml

from numaproof.reports.board.data import WORDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.reports.board.data import BoardFinding
    from numaproof.reports.board.standing import Entry

SCENARIO = "scenario"
"""What a file of known failures calls every generated scenario."""

_NO_REASON = "not accounted for yet"

Row = dict[str, str]
"""An entry of the file."""

# Nothing that an implementation says of itself: a line break would end the comment.
_HEAD = "# What is known to fail, for `--known-failures`: each reason says why that is accepted.\n"


def known_failures(entry: Entry) -> str:
    """The file of known failures by which an implementation passes; empty for none.

    What a kubelet does by a named defect needs no entry. A case whose failures with one cause have
    several reasons has an entry for each machine.
    """
    rows = list(_rows(entry))
    if not rows:
        return ""
    return _HEAD + yaml.safe_dump(
        {"known_failures": rows}, sort_keys=False, width=100, allow_unicode=True
    )


def commands(entry: Entry, file: str) -> dict[str, str]:
    """The commands that its file is for, each with its line; `CMD` stands for the program's."""
    scenarios = {row["case"] == SCENARIO for row in _rows(entry)}
    options = ("--kubernetes", entry.kubernetes, "--level", entry.level, "--known-failures", file)
    rest = f'--implementation "CMD" {shlex.join(options)}'
    named = (("check", False), ("fuzz", True))
    return {name: f"numaproof {name} {rest}" for name, which in named if which in scenarios}


def _rows(entry: Entry) -> Iterator[Row]:
    findings = [one for one in entry.findings if one.kind != "expected"]
    reasons: dict[tuple[str, str], set[str]] = {}
    for finding in findings:
        for where in finding.cases:
            reasons.setdefault((where.case, where.signature), set()).add(_reason(finding))
    written: set[tuple[str, ...]] = set()
    for finding in findings:
        for row in _of(finding, reasons):
            key = (row["case"], row.get("machine", "*"), row["signature"])
            if row["signature"] and key not in written:
                written.add(key)
                yield row


def _of(finding: BoardFinding, reasons: dict[tuple[str, str], set[str]]) -> Iterator[Row]:
    reason = _reason(finding)
    if not finding.cases:
        for signature in finding.signatures:
            yield {"case": SCENARIO, "signature": signature, "reason": reason}
    for where in finding.cases:
        last = {"signature": where.signature, "reason": reason}
        if len(where.machines) > 1 and len(reasons[where.case, where.signature]) == 1:
            yield {"case": where.case, **last}
            continue
        for machine in where.machines:
            yield {"case": where.case, "machine": machine, **last}


def _reason(finding: BoardFinding) -> str:
    """The reason as it was written; what one run says in its place is none of the others'."""
    if finding.reason and finding.kind in WORDED:
        return f"{finding.kind}: {finding.reason}"
    return finding.reason or _NO_REASON
