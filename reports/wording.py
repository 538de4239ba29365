"""Names, symbols and sentences shared by all report formats."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Hello
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
"""The symbol of each outcome, its style in a terminal and its column in narrow tables."""

SYMBOLS = {outcome: symbol for outcome, (symbol, _, _) in _LOOKS.items()}
"""The symbol of each outcome, the worst first. Small cells show it without the name."""

STYLES = {outcome: style for outcome, (_, style, _) in _LOOKS.items()}

COLUMNS = ("pass", "fail", "error", "unsupported", "expected failure", "known failure")
"""The columns of narrow tables, which combine outcomes."""


def is_wrong_answer(outcome: events.Outcome) -> bool:
    """Whether an outcome means a wrong answer, as opposed to a broken program or run."""
    return _LOOKS[outcome][2] == "fail"


def columns(tally: OutcomeTally, whole: OutcomeTally) -> tuple[tuple[str, int], ...]:
    """Returns the counts of a tally for the columns of a narrow table.

    The column of known failures is left out if the `whole` run has none.
    """
    counts = Counter[str]()
    for outcome, count in tally.counts.items():
        counts[_LOOKS[outcome][2]] += count
    shown = COLUMNS if whole.of("known failure") else COLUMNS[:-1]
    return tuple((name, counts[name]) for name in shown)


def implementation(summary: Summary) -> str:
    """Returns the implementation's name, version and language."""
    who = summary.start.implementation if summary.start else None
    return _name(who) if who else "a program that did not answer hello"


def _name(who: Hello) -> str:
    return f"{who.name} {who.version} ({who.language})"


def left_side(start: events.RunStarted) -> str:
    """Returns the name of the left side of a comparison; empty if there is none."""
    return _name(start.left) if start.left else ""


_MAX_BUILD = 10


def surroundings(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Returns pairs of a name and a value: what identifies the builds and the host of a run."""
    start = summary.start
    if start is None:
        return ()
    sides = (("Build", start.implementation), ("Build on the left", start.left))
    rows = [
        (f"{side}: {name}", value)
        for side, who in sides
        if who
        for name, value in [*(who.build or {}).items()][:_MAX_BUILD]
    ]
    return (*rows, *([("Host", start.host)] if start.host else []))


def baseline_text(divergence: events.BaselineDivergence) -> str:
    """Describes which baseline an implementation followed, with the defects that affect it.

    The names of defects are those in `docs/findings.md`.
    """
    names = f" ({', '.join(divergence.defects)})" if divergence.defects else ""
    documented = "" if divergence.baseline == "kubelet" else "as documented, not "
    return f"{documented}as the kubelet does{names}"


def baseline_counts(summary: Summary) -> tuple[tuple[str, int], ...]:
    """Returns the baselines that were followed, with the number of case runs for each."""
    taken = (
        baseline_text(run.baseline_divergence) for run in summary.runs if run.baseline_divergence
    )
    return tuple(sorted(Counter(taken).items()))


def expected(summary: Summary) -> Counter[str]:
    """Counts the case runs that showed each named defect."""
    return Counter(run.defect or "unnamed defect" for run in summary.expected_failures)


def untested_line(summary: Summary) -> str:
    """Returns the number of requirements without a case, as a phrase; empty if there are none."""
    count = len(summary.untested_ids)
    what = plural(count, "requirement")
    return f"{what} untested; see requirements.yaml for the reasons" if count else ""


_MAX_CLAIMS = 20
_FEW_CLAIMS = 3
_MAX_LEFT = 20


_FEW_EXAMPLES = 50


def budget_line(summary: Summary) -> str:
    """Returns a sentence about a time limit that left few examples; empty if it did not."""
    start, played = summary.start, summary.tally.total
    if start is None or start.kind != "fuzz" or summary.verdict != "passed":
        return ""
    if not start.total and played < _FEW_EXAMPLES:
        return f"Time ran out after only {plural(played, 'example')}; a longer run tests more."
    if played < start.total:
        return f"Time ran out after {played:,} of {plural(start.total, 'example')}."
    return ""


def claims_lines(summary: Summary, *, brief: bool = False) -> tuple[str, ...]:
    """Returns sentences about the implementation's claims, starting with contradicted ones.

    They explain why case runs were unsupported, which claims are missing and which are assumed.
    If `brief`, long lists are only counted.
    """
    review = summary.end.claims if summary.end else None
    if review is None:
        return ()
    what = "example" if summary.fuzz else "case run"
    lines = [f"{one}." for one in review.untrue]
    unclaimed = [*review.missing_claims.items()]
    if brief and len(unclaimed) > _FEW_CLAIMS:
        skipped = plural(sum(review.missing_claims.values()), what)
        claims = plural(len(unclaimed), "claim")
        lines.append(f"{skipped} skipped: {claims} missing; see the report.")
    else:
        lines += [
            f"{claim} not claimed: {plural(count, what)} skipped."
            for claim, count in unclaimed[:_MAX_CLAIMS]
        ]
        if left := sum(count for _, count in unclaimed[_MAX_CLAIMS:]):
            lines.append(f"Other features not claimed: {plural(left, what)} skipped.")
    if review.declined_runs:
        lines.append(f"Claimed, but answered unsupported: {plural(review.declined_runs, what)}.")
    if above := sum(run.only_invariants and run.outcome != "unsupported" for run in summary.runs):
        lines.append(f"Above the level, judged only by the invariants: {plural(above, what)}.")
    levels = [one for one in review.possible if one.startswith("level ")]
    lines += [f"Could be claimed: {one}." for one in levels]
    if allowed := [one for one in review.possible if one not in levels]:
        long = brief and len(allowed) > _FEW_CLAIMS
        count = plural(len(allowed), "feature")
        listed = f"{count}; see the report" if long else ", ".join(allowed)
        lines.append(f"Possible with its operations, but not claimed: {listed}.")
    if review.assumes_features:
        lines.append(
            "`features` is missing in hello, so all features that the operations, policies and"
            " options allow are assumed; list yours to limit the tests (see numaproof features)."
        )
    return tuple(lines)


def leftover_lines(summary: Summary) -> tuple[str, ...]:
    """Returns sentences about processes that are still running after the run."""
    left = summary.end.leftover_processes if summary.end else ()
    lines = [f"Could not end process {one}, which the program started." for one in left]
    if len(lines) > _MAX_LEFT:
        more = f"Could not end {len(lines) - _MAX_LEFT} more; see events.jsonl."
        return (*lines[:_MAX_LEFT], more)
    return tuple(lines)


def coverage_lines(coverage: events.Coverage) -> tuple[tuple[str, str], ...]:
    """Returns what fuzzing covered, as pairs of a subject and its counts."""
    rows = [
        (subject, ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        for subject, counts in coverage.counts.items()
    ]
    if coverage.highest:
        highest = (f"{name} {value:g}" for name, value in coverage.highest.items())
        rows.append(("highest", ", ".join(highest)))
    return tuple(rows)


def release_and_level(start: events.RunStarted) -> tuple[str, str]:
    """Returns the run's Kubernetes release and level; "unknown" if `hello` was not answered."""
    if start.implementation is None:
        return "unknown", "unknown"
    return start.kubernetes, start.level


_COMMANDS = ("check", "fuzz", "diff", "replay")


def command_name(start: events.RunStarted) -> str:
    """Returns the command of a run; `replay` and failed handshakes have the kind "check"."""
    words = start.command.split(maxsplit=2)
    named = words[1] if words[:1] == ["numaproof"] and len(words) > 1 else ""
    return named if start.kind == "check" and named in _COMMANDS else start.kind


def setting(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Returns pairs of a name and a value for the head of a report."""
    started = summary.start
    if started is None:
        return ()
    kubernetes, level = release_and_level(started)
    return (
        ("Implementation", implementation(summary)),
        *([("Compared with", left_side(started))] if started.left else []),
        ("Kubernetes", kubernetes),
        ("Level", level),
        ("numaproof", started.numaproof),
        *([("Seed", str(started.seed))] if started.seed is not None else []),
        *([("Bound", "; ".join(started.bound))] if started.bound else []),
        ("Duration", f"{summary.seconds:.1f} s"),
        *_origin(started.origin),
        *surroundings(summary),
    )


def shown_date(date: str) -> str:
    """Returns a time such as ``2026-03-01T12:00:00Z`` as ``1 Mar 2026, 12:00 UTC``."""
    try:
        at = dt.datetime.fromisoformat(date)
    except ValueError:
        return date
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def _origin(origin: events.Origin | None) -> tuple[tuple[str, str], ...]:
    if origin is None:
        return ()
    rows = (
        ("Date", shown_date(origin.date)),
        ("Commit", origin.commit),
        ("Platform", origin.platform),
    )
    return tuple((name, value) for name, value in rows if value)


def problem_lines(sentence: events.Sentence) -> tuple[str, ...]:
    """Formats a problem as lines: what differs, then the expected and the actual value."""
    if isinstance(sentence, str):
        return tuple(sentence.split("\n"))
    return (sentence.what, *side_lines(sentence))


def side_lines(sentence: events.Sentence, limit: int | None = None) -> tuple[str, ...]:
    """Formats the expected and the actual value on labelled lines of up to `limit` characters."""
    if isinstance(sentence, str):
        return ()
    both = ("expected", sentence.expected), ("got", sentence.actual)
    return tuple(
        f"  {label:8} {side if limit is None else one_line(side, limit)}" for label, side in both
    )


def short_lines(sentence: events.Sentence, limit: int) -> tuple[str, ...]:
    """Formats a difference as lines of up to `limit` characters, and any other text as one line."""
    return (one_line(events.headline(sentence), limit), *side_lines(sentence, limit))
