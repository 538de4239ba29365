"""The words for outcomes and verdicts, shared by all formats."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reports.summary import OutcomeTally, Summary

_LOOKS: Mapping[events.Outcome, tuple[str, str, str]] = {
    "fail": ("✗", "bold red", "fail"),
    "missing expected failure": ("≠", "bold red", "fail"),
    "nondeterministic": ("≁", "bold red", "fail"),
    "missing known failure": ("≠", "bold red", "fail"),
    "fault": ("!", "bold magenta", "error"),
    "crash": ("†", "bold magenta", "error"),
    "time-out": ("◔", "bold magenta", "error"),
    "protocol error": ("?", "bold magenta", "error"),
    "not run": ("∅", "bold yellow", "error"),
    "known failure": ("≈", "yellow", "known failure"),
    "expected failure": ("≈", "yellow", "expected failure"),
    "pass": ("✓", "green", "pass"),
    "unsupported": ("○", "dim", "unsupported"),
}
"""Each outcome's symbol, its style in a terminal and its column in a narrow table."""

SYMBOLS = {outcome: symbol for outcome, (symbol, _, _) in _LOOKS.items()}
"""A symbol for each outcome, the worst first: beside its name, or instead if there is no room."""

STYLES = {outcome: style for outcome, (_, style, _) in _LOOKS.items()}

COLUMNS = ("pass", "fail", "error", "unsupported", "expected failure", "known failure")
"""The columns of narrow tables, in which outcomes are combined; wide tables list each."""


def is_wrong_answer(outcome: events.Outcome) -> bool:
    """Whether an outcome is one of a wrong answer; where others are bad, program or run broke."""
    return _LOOKS[outcome][2] == "fail"


def columns(tally: OutcomeTally, whole: OutcomeTally) -> tuple[tuple[str, int], ...]:
    """The counts of a tally for the columns of a narrow table about a `whole` run.

    Only a run with known failures has a column of them.
    """
    counts = Counter[str]()
    for outcome, count in tally.counts.items():
        counts[_LOOKS[outcome][2]] += count
    shown = COLUMNS if whole.of("known failure") else COLUMNS[:-1]
    return tuple((name, counts[name]) for name in shown)


def implementation(summary: Summary) -> str:
    """The name, version and language of the implementation."""
    who = summary.start.implementation if summary.start else None
    if who is None:
        return "a program that did not answer hello"
    return f"{who.name} {who.version} ({who.language})"


def baseline_text(divergence: events.BaselineDivergence) -> str:
    """The side that was taken where a kubelet breaks its documents, and by which defects it does.

    The names are those of `docs/findings.md`.
    """
    names = f" ({', '.join(divergence.defects)})" if divergence.defects else ""
    documented = "" if divergence.baseline == "kubelet" else "as documented, not "
    return f"{documented}as the kubelet does{names}"


def baseline_counts(summary: Summary) -> tuple[tuple[str, int], ...]:
    """The sides that were taken, with how many case runs took each."""
    taken = (
        baseline_text(run.baseline_divergence) for run in summary.runs if run.baseline_divergence
    )
    return tuple(sorted(Counter(taken).items()))


def expected(summary: Summary) -> Counter[str]:
    """How many case runs showed each named defect."""
    return Counter(run.defect or "unnamed defect" for run in summary.expected_failures)


def untested_line(summary: Summary) -> str:
    """How many requirements no case can check; empty if the stream lists none."""
    count = len(summary.untested_ids)
    what = plural(count, "requirement")
    return f"{what} untested; the registry says why" if count else ""


_MAX_CLAIMS = 20
_MAX_LEFT = 20


def claims_lines(summary: Summary) -> tuple[str, ...]:
    """What the run shows of the implementation's claims, in sentences: the contradicted first.

    They say why case runs were unsupported, what its operations would allow, and what is assumed.
    """
    review = summary.end.claims if summary.end else None
    if review is None:
        return ()
    what = "example" if summary.fuzz else "case run"
    lines = [f"{one}." for one in review.untrue]
    unclaimed = [*review.missing_claims.items()]
    lines += [
        f"{claim} not claimed: {plural(count, what)} not asked."
        for claim, count in unclaimed[:_MAX_CLAIMS]
    ]
    if left := sum(count for _, count in unclaimed[_MAX_CLAIMS:]):
        lines.append(f"Other claims not made: {plural(left, what)} not asked.")
    if review.declined_runs:
        lines.append(f"Claimed, but answered unsupported: {plural(review.declined_runs, what)}.")
    levels = [one for one in review.possible if one.startswith("level ")]
    lines += [f"Could be claimed: {one}." for one in levels]
    if allowed := [one for one in review.possible if one not in levels]:
        lines.append(
            f"Allowed by its operations, but not claimed and not asked: {', '.join(allowed)}."
        )
    if review.assumes_features:
        lines.append(
            "hello has no `features`, so all that its operations, policies and options allow are"
            " assumed; list what you have to be asked for nothing else (numaproof features)."
        )
    return tuple(lines)


def leftover_lines(summary: Summary) -> tuple[str, ...]:
    """The processes that outlived the run, in sentences."""
    left = summary.end.leftover_processes if summary.end else ()
    lines = [f"Could not end process {one}, which the program started." for one in left]
    if len(lines) > _MAX_LEFT:
        more = f"Could not end {len(lines) - _MAX_LEFT} more; see events.jsonl."
        return (*lines[:_MAX_LEFT], more)
    return tuple(lines)


def coverage_lines(coverage: events.Coverage) -> tuple[tuple[str, str], ...]:
    """What fuzzing covered: pairs of a subject and the counts of what occurred."""
    rows = [
        (subject, ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        for subject, counts in coverage.counts.items()
    ]
    if coverage.highest:
        highest = (f"{name} {value:g}" for name, value in coverage.highest.items())
        rows.append(("highest", ", ".join(highest)))
    return tuple(rows)


def release_and_level(start: events.RunStarted) -> tuple[str, str]:
    """The Kubernetes release and the level of the run; unknown without an answer to hello."""
    if start.implementation is None:
        return "unknown", "unknown"
    return start.kubernetes, start.level


def setting(summary: Summary) -> tuple[tuple[str, str], ...]:
    """What was tested and how: pairs of a name and a value, for the head of a report."""
    started = summary.start
    if started is None:
        return ()
    kubernetes, level = release_and_level(started)
    return (
        ("Implementation", implementation(summary)),
        ("Kubernetes", kubernetes),
        ("Level", level),
        ("numaproof", started.numaproof),
        *([("Seed", str(started.seed))] if started.seed is not None else []),
        ("Duration", f"{summary.seconds:.1f} s"),
    )


def problem_lines(sentence: events.Sentence) -> tuple[str, ...]:
    """A problem as lines: what differs, and on labelled lines what was expected and what came."""
    if isinstance(sentence, str):
        return tuple(sentence.split("\n"))
    return (sentence.what, *side_lines(sentence))


def side_lines(sentence: events.Sentence, limit: int | None = None) -> tuple[str, ...]:
    """What was expected and what came on labelled lines, each side at most `limit` characters."""
    if isinstance(sentence, str):
        return ()
    both = ("expected", sentence.expected), ("got", sentence.actual)
    return tuple(
        f"  {label:8} {side if limit is None else one_line(side, limit)}" for label, side in both
    )


def short_lines(sentence: events.Sentence, limit: int) -> tuple[str, ...]:
    """The lines of a difference, each at most `limit` characters; any other text is one line."""
    return (one_line(events.headline(sentence), limit), *side_lines(sentence, limit))
