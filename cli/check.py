"""`numaproof check`: runs the table of cases on machines against an implementation."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numaproof.case import complete_case, unmatched
from numaproof.conformance.cases import loading
from numaproof.conformance.check import check as play
from numaproof.conformance.differential import recording_check
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.harness import run_harness
from numaproof.machine_names import machines_option, named_machines
from numaproof.outputs import out_option
from numaproof.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.events import AnyEvent


@click.command()
@target_options
@click.option(
    "--select",
    metavar="ID-GLOB",
    default="*",
    help="Run only cases whose id matches.",
    shell_complete=complete_case,
)
@click.option(
    "--cases",
    "own",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="Also run your own cases: a file or a folder of files. Repeatable.",
)
@machines_option
@out_option("numaproof-report")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def check(
    select: str,
    own: tuple[Path, ...],
    machine_names: Iterable[str],
    out: Path,
    *,
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
      numaproof check --implementation "./my-driver" --cases numaproof-cases.yaml
    """
    cases = loading.with_own(loading.bundled_cases(), own)
    with scratch_folder() as trees:
        machines = named_machines(machine_names, trees)

        def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
            chosen = harness_run.target
            runs = runner.select(cases, machines, chosen, select)
            kept = [] if machine_names else _recordings(chosen, select)
            complaint = None if runs or kept else unmatched(select, cases)
            if complaint:
                raise click.UsageError(f"no case matches --select {complaint}")
            if not runs and not kept:
                raise click.UsageError(
                    f"no case matches --select {select!r} on these machines at level"
                    f" {chosen.level} for Kubernetes {chosen.kubernetes}"
                )
            return play(runs, harness_run, kept)

        return run_harness(start, target, out, as_json=as_json)


def _recordings(target: Target, select: str) -> list[Recording]:
    """The recordings whose names match; each brings its own machine."""
    return [
        one
        for one in recording_check.of_target(target)
        if fnmatchcase(recording_check.name_of(one), select)
    ]
