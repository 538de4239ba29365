"""`numaproof gauntlet`: which seeded bugs the cases and fuzzing catch."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from numaproof.inputs.plurals import plural
from numaproof.outputs import OUTPUT_FILE, out_option

if TYPE_CHECKING:
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from numaproof.conformance.seeded_bugs.kill_matrix import Row
    from numaproof.protocol.requirement_proofs import Proof

_SURVIVED, _CUT_SHORT = 1, 3

_EXAMPLES = 2000
"""Scenarios that fuzzing has for a bug."""


def _complete(
    ctx: click.Context,
    param: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from numaproof.conformance.seeded_bugs.catalogue import BUGS

    return [CompletionItem(bug.id) for bug in BUGS if bug.id.startswith(incomplete)]


@click.command()
@click.option(
    "--select",
    metavar="ID-GLOB",
    default="*",
    help="Try only bugs whose id matches.",
    shell_complete=_complete,
)
@click.option("--table-only", is_flag=True, help="Run the cases only.")
@click.option("--fuzz-only", is_flag=True, help="Fuzz only.")
@click.option(
    "--quick",
    is_flag=True,
    help="Stop at the first case that catches a bug, and fuzz for a sample of the bugs.",
)
@click.option(
    "--requirements",
    is_flag=True,
    help="Play, against every bug that breaks a requirement, the cases that cite it, at its level;"
    " --select takes requirement ids, too.",
)
@click.option(
    "--examples",
    type=click.IntRange(1),
    default=_EXAMPLES,
    help=f"Scenarios to fuzz each bug with (default: {_EXAMPLES}).",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, help="Seed of the scenarios (default: 0)."
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Number of processes (default: one for each core)."
)
@out_option(
    "gauntlet",
    ("gauntlet.json", "gauntlet.md", "requirements.json", "requirements.md"),
    "gauntlet.json and gauntlet.md, or requirements.json and requirements.md",
)
@click.option(
    "--quick-set",
    type=OUTPUT_FILE,
    help="Choose the case runs of `numaproof check --quick` anew, write them to this file, and do"
    " nothing else.",
)
@click.option("--json", "json", is_flag=True, help="Print the matrix as JSON.")
def gauntlet(
    *,
    select: str,
    table_only: bool,
    fuzz_only: bool,
    quick: bool,
    requirements: bool,
    examples: int,
    seed: int,
    jobs: int | None,
    out: Path,
    quick_set: Path | None,
    json: bool,
) -> int:
    """Run the cases and fuzzing against a reference with seeded bugs, one bug at a time.

    For each bug it reports which cases and invariants catch it, how many generated scenarios
    fuzzing alone needs, and how small the failing one gets. It fails if a bug survives.

    With --requirements it shows instead that the cases of each requirement test it: whoever breaks
    that requirement alone fails one of them.

    \b
    Examples:
      numaproof gauntlet --quick
      numaproof gauntlet --requirements --select "CPU-HINT-*"
      numaproof gauntlet --quick-set conformance/quick.yaml
      numaproof gauntlet --select "memory-*" --fuzz-only --examples 500
    """
    from numaproof.conformance.cases import naming
    from numaproof.conformance.seeded_bugs.catalogue import BUGS
    from numaproof.conformance.seeded_bugs.kill_matrix import Plan, matrix, rows
    from numaproof.metadata import VERSION
    from numaproof.reports.gauntlet import as_json, as_text, write_files
    from numaproof.reports.gauntlet_progress import GauntletProgress

    if quick_set:
        return _write_quick_set(quick_set, jobs or os.cpu_count() or 1)
    if requirements:
        if table_only or fuzz_only or quick:
            other = "--table-only" if table_only else "--fuzz-only" if fuzz_only else "--quick"
            raise click.UsageError(f"give --requirements or {other}, not both")
        return _prove(select, jobs or os.cpu_count() or 1, out, json=json)
    bugs = [bug.id for bug in BUGS if fnmatchcase(bug.id, select)]
    if not bugs:
        near = naming.did_you_mean(select, (bug.id for bug in BUGS))
        raise click.UsageError(f"no seeded bug matches --select {select!r}{near}")
    if table_only and fuzz_only:
        raise click.UsageError("give --table-only or --fuzz-only, not both")
    make = Plan.quick if quick else Plan.of
    plan = make(bugs, table=not fuzz_only, fuzz=not table_only, examples=examples, seed=seed)
    done: list[Row] = []
    complete = True
    stream = sys.stderr if json else sys.stdout
    with GauntletProgress(stream, len(bugs)) as progress:
        try:
            for row in rows(plan, jobs or os.cpu_count() or 1):
                done.append(row)
                progress.show(row[0])
        except KeyboardInterrupt:
            complete = False
    told = matrix(plan, done, VERSION, complete=complete)
    write_files(told, out)
    stream.write(f"{as_text(told)}written to {out}\n")
    if json:
        sys.stdout.write(as_json(told).decode())
    if not complete:
        return _CUT_SHORT
    return _SURVIVED if told.survivors else 0


def _prove(select: str, jobs: int, out: Path, *, json: bool) -> int:
    from numaproof.conformance.cases import naming
    from numaproof.conformance.requirements import load_registry
    from numaproof.conformance.seeded_bugs import requirement_hunt
    from numaproof.metadata import VERSION
    from numaproof.protocol.requirement_proofs import RequirementProofs
    from numaproof.reports.requirement_proofs import ProofProgress, as_json, as_text, write_files

    registry = load_registry()
    every = requirement_hunt.pairs(registry)
    wanted = [pair for pair in every if any(fnmatchcase(one, select) for one in pair)]
    if not wanted:
        near = naming.did_you_mean(select, (one for pair in every for one in pair))
        raise click.UsageError(f"no requirement or seeded bug matches --select {select!r}{near}")
    found: list[Proof] = []
    complete = True
    stream = sys.stderr if json else sys.stdout
    with ProofProgress(stream, len(wanted)) as progress:
        try:
            for proof in requirement_hunt.proofs(wanted, jobs):
                found.append(proof)
                progress.show(proof)
        except KeyboardInterrupt:
            complete = False
    without = requirement_hunt.without_violator(registry)
    told = RequirementProofs(
        VERSION,
        requirement_hunt.in_order(found, registry),
        tuple(one for one in without if fnmatchcase(one, select)),
        complete,
    )
    write_files(told, out)
    stream.write(f"{as_text(told)}written to {out}\n")
    if json:
        sys.stdout.write(as_json(told).decode())
    if not complete:
        return _CUT_SHORT
    return _SURVIVED if told.let_through or told.without else 0


def _write_quick_set(file: Path, jobs: int) -> int:
    from numaproof.conformance.seeded_bugs import quick_cover
    from numaproof.conformance.seeded_bugs.catalogue import BUGS
    from numaproof.folders.output_files import write_file
    from numaproof.reports.progress import Bar

    found = {}
    with Bar(sys.stderr, None, "bugs") as bar:
        for bug, killed in quick_cover.kills(jobs):
            found[bug] = killed
            bar.move(len(found), len(BUGS), bug)
    runs = quick_cover.cover(found)
    write_file(file, quick_cover.text(runs))
    survivors = [bug.id for bug in BUGS if not found[bug.id]]
    caught = plural(len(BUGS) - len(survivors), "seeded bug")
    click.echo(f"{file}: {plural(len(runs), 'case run')} catch {caught}")
    if survivors:
        click.echo(f"not caught: {', '.join(survivors)}", err=True)
    return _SURVIVED if survivors else 0
