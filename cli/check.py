"""`numaproof check`: runs the table of cases on machines against an implementation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numaproof.conformance.cases import loading
from numaproof.conformance.check import check as play
from numaproof.conformance.differential import recording_check, recordings
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.harness import run_harness
from numaproof.machine_names import machines_option, named_machines
from numaproof.outputs import out_option, repeat_option
from numaproof.selecting import select_options, selection
from numaproof.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent


@click.command()
@target_options
@select_options
@click.option(
    "--cases",
    "own",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="Also run your own cases: a file or a folder of files. Repeatable.",
)
@machines_option
@repeat_option
@out_option("check")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def check(
    *,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    own: tuple[Path, ...],
    machine_names: Iterable[str],
    repeat: int,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Run every case on every machine it applies to, then the recordings of the real kubelet.

    The recordings are those of the chosen release; --machine skips them.

    \b
    Examples:
      numaproof check
      numaproof check --implementation "./my-driver --protocol" --level placement
      numaproof check --select "static-*" --machine laptop-4c8t --kubernetes 1.35
      numaproof check --select area:memory --select "CPU-OPT-*" --exclude "*-hugepages-*"
      numaproof check --implementation "./my-driver" --cases numaproof-cases.yaml
    """
    cases = loading.with_own(loading.bundled_cases(), own)
    with scratch_folder() as trees:
        machines = named_machines(machine_names, trees)

        def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
            chosen = harness_run.target
            kept = () if machine_names else recording_check.of_target(chosen)
            every = (*cases, *recordings.bundled(chosen.kubernetes))
            wanted = selection(select, exclude, every)
            runs, kept = runner.select(wanted.of(cases), machines, chosen), wanted.of(kept)
            if not runs and not kept:
                raise click.UsageError(
                    f"none of the selected cases applies to these machines at level"
                    f" {chosen.level} for Kubernetes {chosen.kubernetes}"
                )
            return play(runs, harness_run, kept, times=repeat)

        return run_harness(start, target, out, as_json=as_json)
