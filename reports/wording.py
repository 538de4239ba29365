"""The words that every format uses for outcomes and verdicts, so that all say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.layout import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.events import CampaignStarted, Outcome, Reached
    from numaproof.reports.summary import Summary, Tally, Verdict

VERDICTS: Mapping[Verdict, str] = {
    "passed": "Passed",
    "failed": "Failed",
    "incomplete": "Incomplete",
    "nothing tested": "Nothing tested",
}

SYMBOLS: Mapping[Outcome, str] = {
    "pass": "✓",
    "fail": "✗",
    "unsupported": "○",
    "fault": "!",
    "crash": "†",
    "time-out": "◔",
    "protocol error": "?",
    "not run": "∅",
    "expected failure": "≈",
    "missing expected failure": "≠",
    "nondeterministic": "≁",
}
"""One sign for each outcome, beside its name or where there is no room for one."""

COLUMNS: tuple[tuple[str, tuple[Outcome, ...]], ...] = (
    ("pass", ("pass",)),
    ("fail", ("fail", "missing expected failure", "nondeterministic")),
    ("error", ("fault", "crash", "time-out", "protocol error", "not run")),
    ("unsupported", ("unsupported",)),
    ("expected failure", ("expected failure",)),
)
"""Outcomes put together for narrow tables; the wide ones name each."""


def columns(tally: Tally) -> tuple[tuple[str, int], ...]:
    """The counts of a tally by the columns of a narrow table."""
    return tuple((name, sum(map(tally.of, outcomes))) for name, outcomes in COLUMNS)


def counts_line(summary: Summary) -> str:
    """How much was run, and how it ended."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.tally.counts.items())
    what = plural(summary.tally.total, "example" if summary.fuzz else "case run")
    return what + (f" ({counts})" if counts else "")


def verdict_line(summary: Summary) -> str:
    """The verdict and the counts behind it in one sentence."""
    head = VERDICTS[summary.verdict]
    if summary.gaps and summary.verdict != "incomplete":
        head += ", and incomplete"
    return f"{head}: {counts_line(summary)}"


def implementation(summary: Summary) -> str:
    """Who was tested, in a few words."""
    who = summary.started.implementation if summary.started else None
    return f"{who.name} {who.version} ({who.language})" if who else "a program that did not greet"


def untested_line(summary: Summary) -> str:
    """How many requirements no case can check; empty where the stream tells of none."""
    count = len(summary.untested)
    each = "each " if count > 1 else ""
    what = plural(count, "requirement")
    return f"{what} untested, {each}for a reason given in the registry" if count else ""


def reached_lines(reached: Reached) -> tuple[tuple[str, str], ...]:
    """What fuzzing reached, as pairs of a subject and how often there was what of it."""
    counted = tuple(
        (
            subject,
            ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        )
        for subject, counts in reached.counts.items()
    )
    highest = ", ".join(f"{name} {value:g}" for name, value in reached.highest.items())
    return (*counted, *([("highest", highest)] if highest else []))


def claimed(started: CampaignStarted) -> tuple[str, str]:
    """Kubernetes release and level that the run was for, unknown without a greeting."""
    if started.implementation is None:
        return "unknown", "unknown"
    return started.kubernetes, started.level


def setting(summary: Summary) -> tuple[tuple[str, str], ...]:
    """What was run against what: pairs of a name and a value, for the head of a report."""
    started = summary.started
    if started is None:
        return ()
    kubernetes, level = claimed(started)
    return (
        ("Implementation", implementation(summary)),
        ("Kubernetes", kubernetes),
        ("Compared", level),
        ("numaproof", started.numaproof),
        *([("Seed", str(started.seed))] if started.seed is not None else []),
        ("Took", f"{summary.seconds:.1f} s"),
    )
