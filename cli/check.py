"""`numaproof check`: runs the cases against an implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

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
    from numaproof.protocol.events import AnyEvent


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
@repeat_option
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
    repeat: int,
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
    """
    from numaproof.conformance import check as checking
    from numaproof.conformance.cases import loading
    from numaproof.conformance.differential import recordings
    from numaproof.conformance.execution import runner
    from numaproof.conformance.selection import quick as quick_set
    from numaproof.workdir.scratch import scratch_folder

    bundled = loading.bundled_cases()
    cases = all_cases(own)
    table = not (select or exclude or quick)
    known = failure_options.known_failures(cases, whole=table and not machine_names)
    options = checking.CheckOptions(times=repeat, known_failures=known, whole=table)
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
