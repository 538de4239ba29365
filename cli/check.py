"""`numaproof check`: runs the cases against an implementation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.choice import IntRange
from numaproof.cli.harness import run_harness
from numaproof.cli.known_failure_options import KnownFailureOptions, known_failures_options
from numaproof.cli.machine_names import machines_option, named_machines
from numaproof.cli.outputs import out_option, repeat_option
from numaproof.cli.selecting import all_cases, own_cases_option, select_options, selection
from numaproof.cli.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent, CaseOnMachine


@click.command()
@target_options
@select_options
@own_cases_option("Also run your own cases: a file or a folder of files. Repeatable.")
@machines_option()
@click.option(
    "--quick",
    is_flag=True,
    help="Run a small subset that still catches every seeded bug, plus your own cases. Skips"
    " recordings.",
)
@click.option(
    "--last-failed",
    is_flag=True,
    help="Run only what failed in the last run with the same --out.",
)
@click.option("--fail-fast", is_flag=True, help="Stop after the first failure.")
@repeat_option
@click.option(
    "--jobs",
    type=IntRange(1),
    metavar="N",
    help="Play N cases at a time, each with its own copy of the program (default: one per core,"
    " or 1 if there are few cases).",
)
@known_failures_options
@out_option("check")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def check(
    *,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    own: tuple[Path, ...],
    machine_names: Iterable[str],
    quick: bool,
    last_failed: bool,
    fail_fast: bool,
    repeat: int,
    jobs: int | None,
    failure_options: KnownFailureOptions,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Run every case on every machine it applies to.

    Also replays the release's recordings of the real kubelet, unless --machine is given.

    \b
    Examples:
      numaproof check
      numaproof check --implementation "./my-driver --protocol" --level placement
      numaproof check --quick --implementation "./my-driver --protocol"
      numaproof check --select "static-*" --machine laptop-4c8t --kubernetes 1.35
      numaproof check --select area:memory --select "CPU-OPT-*" --exclude "*-huge-pages-*"
      numaproof check --implementation "./my-driver" --cases numaproof-cases.yaml
      numaproof check --implementation "./my-driver" --last-failed
    """
    from numaproof.conformance import check as checking
    from numaproof.conformance.cases import loading
    from numaproof.conformance.differential import recordings
    from numaproof.conformance.execution import runner
    from numaproof.conformance.selection import quick as quick_set
    from numaproof.conformance.selection.last_failed import only_failed, only_failed_recordings
    from numaproof.workdir.scratch import scratch_folder

    bundled = loading.bundled_cases()
    cases = all_cases(own)
    failed = _last_failed(out) if last_failed else ()
    table = not (select or exclude or quick or last_failed)
    known = failure_options.known_failures(
        cases,
        whole=table and not machine_names,
        known_ids=partial(known_ids, cases),
    )
    options = checking.CheckOptions(
        times=repeat, known_failures=known, whole=table, jobs=jobs, fail_fast=fail_fast
    )
    with loading.locate_errors(own), scratch_folder() as trees:
        machines = named_machines(machine_names, trees)

        def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
            chosen = harness_run.target
            kept = () if machine_names or quick else recordings.of_target(chosen)
            every: list[Case | Recording] = [
                *cases,
                *recordings.bundled_recordings(chosen.kubernetes),
            ]
            wanted = selection(select, exclude, every)
            runs, kept = [], wanted.of(kept)
            if quick:
                runs = quick_set.select(wanted.of(bundled), machines, chosen)
            played = cases[len(bundled) :] if quick else cases
            runs += runner.select(wanted.of(played), machines, chosen)
            if last_failed:
                harness_run = replace(harness_run, failed_before=failed)
                runs = only_failed(runs, failed)
                kept = only_failed_recordings(kept, failed)
            if not runs and not kept:
                raise click.UsageError(
                    "none of the selected cases applies to these machines at level"
                    f" {chosen.level} for Kubernetes {chosen.kubernetes}; select other cases or"
                    " machines"
                )
            return checking.check(runs, harness_run, kept, options)

        return run_harness(
            start,
            target,
            out,
            as_json=as_json,
            afterwards=failure_options.write_from,
            files=loading.files_by_id(own),
            repeat=repeat,
        )


def known_ids(cases: Iterable[Case]) -> Iterator[str]:
    """Yields everything that an entry of a file of known failures may name."""
    from numaproof.conformance.cases import naming
    from numaproof.conformance.differential import recordings
    from numaproof.conformance.execution import harness_run
    from numaproof.conformance.known_failures.entries import SCENARIO
    from numaproof.protocol.releases import RELEASES

    yield from (name for one in cases for name in naming.names(one))
    yield from (harness_run.CASE, SCENARIO)
    for release in RELEASES:  # last, because reading recordings takes seconds
        yield from (one.case_id for one in recordings.bundled_recordings(release))


def _last_failed(out: Path) -> tuple[CaseOnMachine, ...]:
    """Returns what failed in the last run with this report folder, and says how much it is.

    Raises:
        click.UsageError: there was no such run, or nothing failed in it.
        EventsError: its events are damaged.
    """
    from numaproof.conformance.selection.last_failed import failed_runs
    from numaproof.inputs.plurals import plural
    from numaproof.reports.files import EVENTS, read_events

    if not (out / EVENTS).exists():
        raise click.UsageError(f"no run in {out} yet; check without --last-failed first")
    failed = failed_runs(read_events(out / EVENTS))
    if not failed:
        raise click.UsageError(
            f"no case run failed in the last run in {out}; check without --last-failed"
        )
    click.echo(f"numaproof: {plural(len(failed), 'case run')} failed in the last run", err=True)
    return failed
