"""Searches for runs that catch faulty references; exits with 1 if a fault survives.

cases         play the cases against each seeded bug until one catches it (--whole: all cases)
scenarios     play generated scenarios against each seeded bug
lives         play generated scenarios against bugs in the whole process, judged by invariants alone
bound         play every life within the small bound of `numaproof exhaust` against the bugs that
              need several calls
requirements  play the cases that cite a requirement against each of its mutants
derived       play the cases that cite a rule's requirements against each derived mutant
quick-set     select the case runs of `numaproof check --quick` and write them to --out; with
              --select, keep the runs for all other bugs
mirrors       play every case against correct implementations with other choices
"""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import filter as fnmatch_filter
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.selection import quick
from numaproof.inputs.plurals import plural
from numaproof.protocol.messages import LEVELS
from numaproof.reports.terminal import Bar
from numaproof.workdir.output_files import write_file
from numaproof.workdir.scratch import scratch_folder
from quality import mirror_runs, quick_set, searchers, survivors
from quality.catalogue import BUGS, WHOLE_RUN
from quality.mirrors import MIRRORS
from quality.rule_mutants import mutants
from quality.search import search_all
from quality.suite import bundled_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quality.search import SearchResult
    from quality.searchers import Searcher


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=[*_WAYS, "quick-set", "mirrors"])
    parser.add_argument(
        "--select", default="*", help="only faults whose name matches this glob (default: all)"
    )
    parser.add_argument("--whole", action="store_true", help="with `cases`: play every case")
    parser.add_argument("--seed", type=int, default=0, help="seed of the scenarios (default: 0)")
    parser.add_argument(
        "--examples", type=int, default=2000, help="scenarios for each bug (default: 2000)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="number of processes (default: number of CPUs)",
    )
    parser.add_argument("--out", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    if options.what == "quick-set":
        return _write_quick_set(options.out, options.workers, options.select)
    if options.what == "mirrors":
        return _play_mirrors(options.select)
    names, begin = _WAYS[options.what](options)
    chosen = [name for name in names if fnmatchcase(name, options.select)]
    if not chosen:
        parser.error(f"no fault matches --select {options.select!r}")
    found: dict[str, SearchResult] = {}
    with Bar(sys.stdout, None, "faults") as bar:
        for one in search_all(chosen, begin, options.workers):
            found[one.bug] = one
            if one.has_survived and options.what != "derived":
                bar.line(f"SURVIVED {one.bug}: {plural(one.runs, 'run')}")
            bar.move(len(found), len(chosen), one.bug)
    ordered = [found[name] for name in chosen]
    if options.out:
        write_file(options.out, msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    missed = [one.bug for one in ordered if one.has_survived]
    caught = f"{len(ordered) - len(missed)} of {plural(len(ordered), 'fault')} caught"
    if options.what != "derived":
        sys.stdout.write(f"{caught}\n")
        return bool(missed)
    problems = [*survivors.problems(missed, found)]
    sys.stdout.write("".join(f"{one}\n" for one in (*problems, f"{caught}, {survivors.summary()}")))
    return bool(problems)


def _write_quick_set(file: Path | None, jobs: int, select: str) -> int:
    """Selects the quick set anew; with a selection, only the runs for these bugs."""
    chosen = fnmatch_filter([bug.id for bug in BUGS], select)
    found = {}
    with Bar(sys.stdout, None, "bugs") as bar:
        for bug, killed in quick_set.kills(chosen, jobs):
            found[bug] = killed
            bar.move(len(found), len(chosen), bug)
    kept = quick_set.recorded(quick.bundled_runs()) if len(chosen) < len(BUGS) else {}
    runs = quick_set.cover({**kept, **found})
    if file:
        write_file(file, quick_set.text(runs).encode())
    missed = [bug for bug, killed in found.items() if not killed]
    sys.stdout.write(
        f"{plural(len(runs), 'case run')}; not caught: {', '.join(missed) or 'none'}\n"
    )
    return bool(missed)


def _play_mirrors(select: str) -> int:
    failed = False
    with scratch_folder() as trees:
        suite = bundled_suite(trees)
        for name in fnmatch_filter(MIRRORS, select):
            for level in LEVELS[:2]:
                runs, failures = mirror_runs.blamed(name, level, suite)
                failed |= bool(failures)
                sys.stdout.write(f"{name} at {level}: {plural(runs, 'run')}, ")
                sys.stdout.write(f"{len(failures)} blamed\n")
                sys.stdout.write("".join(f"  {one}\n" for one in failures))
    return failed


_WAYS: dict[str, Callable[[argparse.Namespace], tuple[list[str], Callable[[Path], Searcher]]]] = {
    "cases": lambda options: (
        [bug.id for bug in BUGS],
        partial(searchers.by_cases, whole=options.whole),
    ),
    "scenarios": lambda options: (
        [bug.id for bug in BUGS],
        partial(searchers.by_scenarios, seed=options.seed, examples=options.examples),
    ),
    "lives": lambda options: (
        [bug.id for bug in WHOLE_RUN],
        partial(searchers.by_node_scenarios, seed=options.seed, examples=options.examples),
    ),
    "bound": lambda _: (
        [bug.id for bug in BUGS if bug.subject == "lifecycle"],
        searchers.by_lives,
    ),
    "requirements": lambda _: ([*searchers.requirement_mutants()], searchers.by_citing),
    "derived": lambda _: ([one.id for one in mutants()], searchers.by_rule),
}
"""For each command: the names of its faults and a function that creates a searcher."""

if __name__ == "__main__":
    sys.exit(main())
