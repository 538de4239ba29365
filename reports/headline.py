"""The verdict on a run in one sentence, with its counts and causes, shared by all formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.reports.groups import causes
from numaproof.reports.wording import VERDICTS

if TYPE_CHECKING:
    from numaproof.reports.summary import Summary


def counts_line(summary: Summary) -> str:
    """How much ran, how much of it failed by how many causes, and with what outcomes."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.tally.counts.items())
    what = plural(summary.tally.total, "example" if summary.fuzz else "case run")
    if summary.tally.bad:
        what = f"{summary.tally.bad:,} of {what}"
        if found := len(causes(summary)):
            what += f", {plural(found, 'cause')}"
    return what + (f" ({counts})" if counts else "")


def verdict_line(summary: Summary) -> str:
    """The verdict and the counts behind it in one sentence."""
    head = VERDICTS[summary.verdict]
    if summary.gaps and summary.verdict != "incomplete":
        head += ", incomplete"
    return f"{head}: {counts_line(summary)}"
