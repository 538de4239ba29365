"""Compares two runs: what newly fails, what is fixed, what fails for another cause, what is slower.

Case runs are compared by case and machine. What fuzzing found is compared by its signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.events import GOOD
from numaproof.reports import wording
from numaproof.reports.markdown import code, escape
from numaproof.reports.story import failure_of
from numaproof.reports.untrusted_text import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.protocol.events import Outcome
    from numaproof.reports.json_output import ChangedRun, ComparedRun, RunComparison
    from numaproof.reports.summary import Summary

_SLOWER_TIMES, _SLOWER_SECONDS = 2.0, 1.0
"""A case run is slower if it takes this many times as long, and this many seconds longer."""

_INCOMPLETE = 3
_LISTED = 20
_MESSAGE = 300

_TITLES = {
    "newly_failing": "Newly failing",
    "changed_cause": "Failing for another cause",
    "no_longer_failing": "Fixed",
    "slower": "Slower",
    "missing": "Not in the later run",
}


class RunsDifferError(Exception):
    """Two runs cannot be compared because they are of different kinds."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A case run or a finding, reduced to what is compared."""

    case: str
    title: str
    machine: str
    outcome: Outcome
    signature: str
    message: str
    reproduce: str
    seconds: float

    @property
    def is_good(self) -> bool:
        return self.outcome in GOOD


def compare(before: Summary, after: Summary, folders: tuple[str, str] = ("", "")) -> RunComparison:
    """Compares an earlier and a later run, which were read from these folders.

    Raises:
        RunsDifferError: only one of the runs was made by fuzzing.
    """
    if before.kind != after.kind:
        raise RunsDifferError(
            f"the runs are of different kinds, {before.kind} and {after.kind}; compare two runs of"
            " the same command"
        )
    old, new = _entries(before), _entries(after)
    changes: dict[str, list[ChangedRun]] = {name: [] for name in _TITLES}
    still = {True: 0, False: 0}
    for key in dict.fromkeys((*new, *old)):
        first, last = old.get(key), new.get(key)
        kind = _kind(first, last, found_again=not after.fuzz or bool(after.gaps))
        if kind:
            changes[kind].append(_change(first, last))
        elif last:
            still[last.is_good] += 1
        if first and last and _is_slower(first, last):
            changes["slower"].append(_change(first, last))
    code = 1 if changes["newly_failing"] else _INCOMPLETE if after.gaps else 0
    return {
        "before": _run_facts(before, folders[0]),
        "after": _run_facts(after, folders[1]),
        "exit_code": code,
        "newly_failing": changes["newly_failing"],
        "changed_cause": changes["changed_cause"],
        "no_longer_failing": changes["no_longer_failing"],
        "slower": changes["slower"],
        "missing": changes["missing"],
        "still_failing": still[False],
        "still_good": still[True],
    }


def _kind(first: _Entry | None, last: _Entry | None, *, found_again: bool) -> str:
    """Returns how an entry changed; empty if its outcome is as good or bad as before.

    `found_again` tells whether an entry that is missing from the later run says nothing about it.
    """
    if last is None:
        return "missing" if found_again else "no_longer_failing"
    if last.is_good:
        return "no_longer_failing" if first and not first.is_good else ""
    if first is None or first.is_good:
        return "newly_failing"
    return "changed_cause" if first.signature != last.signature else ""


def _is_slower(first: _Entry, last: _Entry) -> bool:
    more = last.seconds - first.seconds
    return more >= _SLOWER_SECONDS and last.seconds >= _SLOWER_TIMES * first.seconds


def _entries(summary: Summary) -> Mapping[tuple[str, str], _Entry]:
    found: dict[tuple[str, str], _Entry] = {}
    for run in summary.runs:
        cause = "" if run.outcome in GOOD else failure_of(summary, run).cause
        found[run.case, run.machine] = _Entry(
            run.case,
            run.title,
            run.machine,
            run.outcome,
            run.signature,
            cause,
            run.reproduce,
            run.seconds,
        )
    for one in summary.divergences:
        failure = failure_of(summary, one)
        found["", one.signature or one.title] = _Entry(
            "",
            one.title,
            failure.machine,
            one.outcome,
            one.signature,
            failure.cause,
            one.reproduce,
            0.0,
        )
    return found


def _change(first: _Entry | None, last: _Entry | None) -> ChangedRun:
    shown = last or first
    assert shown is not None
    failing = first if first and shown.is_good else shown
    return {
        "case": shown.case,
        "title": shown.title,
        "machine": shown.machine,
        "before": first.outcome if first else None,
        "after": last.outcome if last else None,
        "signature_before": first.signature if first else "",
        "signature": failing.signature,
        "message": failing.message,
        "reproduce": shown.reproduce,
        "seconds_before": first.seconds if first else 0.0,
        "seconds_after": last.seconds if last else 0.0,
    }


def _run_facts(summary: Summary, folder: str) -> ComparedRun:
    start = summary.start
    origin = start.origin if start else None
    return {
        "folder": folder,
        "command": start.command if start else "",
        "implementation": summary.plain()["implementation"],
        "kubernetes": start.kubernetes if start else "",
        "level": start.level if start else "",
        "verdict": summary.verdict,
        "date": origin.date if origin else "",
        "commit": origin.commit if origin else "",
        "gaps": list(summary.gaps),
    }


def comparison_text(comparison: RunComparison) -> str:
    """Formats a comparison as text."""
    return "\n".join(_text(comparison)) + "\n"


def _text(comparison: RunComparison) -> Iterator[str]:
    for name, text in run_descriptions(comparison).items():
        yield f"{name + ':':8}{text}"
    for name, run in (("Before", comparison["before"]), ("After", comparison["after"])):
        yield from (f"{name}: Incomplete: {one_line(gap, _MESSAGE)}" for gap in run["gaps"])
    for title, changes in changes_by_kind(comparison):
        yield ""
        yield f"{title}: {len(changes):,}"
        for one in changes[:_LISTED]:
            yield f"  {one_line(_subject(one), 200)}: {outcomes_text(one)}"
            if one["message"]:
                yield f"    {one_line(one['message'], _MESSAGE)}"
            if one["after"] not in (*GOOD, None) and one["reproduce"]:
                # Not shortened, so that it can be copied.
                yield f"    {visible(one['reproduce'])}"
        if len(changes) > _LISTED:
            yield f"  and {len(changes) - _LISTED:,} more; --json lists all"
    yield ""
    yield conclusion(comparison)


def changes_by_kind(comparison: RunComparison) -> Iterator[tuple[str, Sequence[ChangedRun]]]:
    """Yields titles with what changed, omitting what is empty."""
    lists: dict[str, Sequence[ChangedRun]] = {
        "newly_failing": comparison["newly_failing"],
        "changed_cause": comparison["changed_cause"],
        "no_longer_failing": comparison["no_longer_failing"],
        "slower": comparison["slower"],
        "missing": comparison["missing"],
    }
    yield from ((title, lists[name]) for name, title in _TITLES.items() if lists[name])


def run_descriptions(comparison: RunComparison) -> Mapping[str, str]:
    """Describes what both runs have in common, if anything, and how each differs from the other."""
    parts = {name: _parts(comparison[name]) for name in ("before", "after")}
    shared = [one for one in parts["before"] if one in parts["after"]]
    found = {"Both": ", ".join(filter(None, shared))}
    same_command = comparison["before"]["command"] == comparison["after"]["command"]
    for name in ("before", "after"):
        run = comparison[name]
        own = [run["folder"], *(one for one in parts[name] if one not in shared)]
        text = ", ".join(filter(None, [*own, "" if same_command else run["command"]]))
        found[name.capitalize()] = f"{text}: {run['verdict']}" if text else run["verdict"]
    return {name: one_line(text, _MESSAGE) for name, text in found.items() if text}


def _parts(run: ComparedRun) -> tuple[str, ...]:
    who = run["implementation"]
    return (
        f"{who['name']} {who['version']}" if who else "a program that did not answer hello",
        f"Kubernetes {run['kubernetes']}",
        f"level {run['level']}",
        wording.shown_date(run["date"]),
        f"commit {run['commit']}" if run["commit"] else "",
    )


def _subject(change: ChangedRun) -> str:
    return f"{change['case']} on {change['machine']}" if change["case"] else change["title"]


def outcomes_text(change: ChangedRun) -> str:
    """Returns the outcomes before and after, and the times if the later run took longer."""
    before, after = (
        f"{wording.SYMBOLS[one]} {one}" if one else "not in the run"
        for one in (change["before"], change["after"])
    )
    seconds = change["seconds_before"], change["seconds_after"]
    took = ", {:.1f} s → {:.1f} s".format(*seconds) if _took_longer(*seconds) else ""
    return f"{before} → {after}{took}"


def _took_longer(before: float, after: float) -> bool:
    return bool(before) and after - before >= _SLOWER_SECONDS


def conclusion(comparison: RunComparison) -> str:
    """Returns the result of a comparison in one line, which accounts for every case run."""
    new, failing = len(comparison["newly_failing"]), comparison["still_failing"]
    unchanged = failing + comparison["still_good"]
    counts = {
        "fixed": len(comparison["no_longer_failing"]),
        "for another cause": len(comparison["changed_cause"]),
        "not in the later run": len(comparison["missing"]),
        f"unchanged, {failing:,} of them failing" if failing else "unchanged": unchanged,
        "slower": len(comparison["slower"]),
    }
    head = f"{new:,} newly failing" if new else "Nothing newly failing"
    return " · ".join([head, *(f"{count:,} {what}" for what, count in counts.items() if count)])


def comparison_markdown(comparison: RunComparison) -> str:
    """Formats a comparison as Markdown for a pull request."""
    return "\n".join(_markdown(comparison)) + "\n"


def _markdown(comparison: RunComparison) -> Iterator[str]:
    sign = "❌" if comparison["newly_failing"] else "⚠" if comparison["exit_code"] else "✅"
    yield f"# {sign} {conclusion(comparison)}"
    yield ""
    for name, text in run_descriptions(comparison).items():
        yield f"- {name}: {escape(text, _MESSAGE)}"
    for title, changes in changes_by_kind(comparison):
        yield f"\n## {title} ({len(changes):,})\n"
        for one in changes[:_LISTED]:
            message = f": {escape(one['message'], _MESSAGE)}" if one["message"] else ""
            where = f" on {code(one['machine'])}" if one["case"] else ""
            subject = f"{code(one['case'] or one['title'])}{where}"
            yield f"- {subject} ({escape(outcomes_text(one))}){message}"
        if len(changes) > _LISTED:
            yield f"- … and {len(changes) - _LISTED:,} more"
