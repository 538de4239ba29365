"""Looks for what catches faulty references; exits with 1 where one survives.

cases         every seeded bug against the cases, until one catches it (--whole: every case)
scenarios     every seeded bug against generated scenarios
lives         the bugs of the whole process against generated scenarios and the invariants alone
requirements  every requirement mutant against the cases that cite its requirement
derived       every derived mutant against the cases that cite what its rule names
quick-set     choose the case runs of `numaproof check --quick` anew, and write them to --out
"""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.inputs.plurals import plural
from numaproof.reports.terminal import Bar
from numaproof.workdir.output_files import write_file
from quality import quick_set, searchers, survivors
from quality.catalogue import BUGS, WHOLE_RUN
from quality.rule_mutants import mutants
from quality.search import search_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quality.search import SearchResult
    from quality.searchers import Searcher


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the arguments say, and returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=[*_WAYS, "quick-set"])
    parser.add_argument("--select", default="*", help="only faults whose name matches the glob")
    parser.add_argument("--whole", action="store_true", help="play every case, for `cases`")
    parser.add_argument("--seed", type=int, default=0, help="of the scenarios (default: 0)")
    parser.add_argument("--examples", type=int, default=2000, help="scenarios for a bug")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, help="write the result to this file")
    options = parser.parse_args(arguments)
    if options.what == "quick-set":
        return _write_quick_set(options.out, options.workers)
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


def _write_quick_set(file: Path | None, jobs: int) -> int:
    found = {}
    with Bar(sys.stdout, None, "bugs") as bar:
        for bug, killed in quick_set.kills(jobs):
            found[bug] = killed
            bar.move(len(found), len(BUGS), bug)
    runs = quick_set.cover(found)
    if file:
        write_file(file, quick_set.text(runs).encode())
    missed = [bug for bug, killed in found.items() if not killed]
    sys.stdout.write(
        f"{plural(len(runs), 'case run')}; not caught: {', '.join(missed) or 'none'}\n"
    )
    return bool(missed)


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
    "requirements": lambda _: ([*searchers.requirement_mutants()], searchers.by_citing),
    "derived": lambda _: ([one.id for one in mutants()], searchers.by_rule),
}
"""The names of the faults, and what makes a searcher for them in a process, for each way."""

if __name__ == "__main__":
    sys.exit(main())
