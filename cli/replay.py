"""`numaproof replay`: replays the cases of a file call by call."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from numaproof.case import unmatched
from numaproof.conformance.cases import loading
from numaproof.conformance.check import check
from numaproof.conformance.differential import recording_check, recordings
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.harness import run_harness
from numaproof.machine_names import machines_option, named_machines
from numaproof.outputs import out_option
from numaproof.protocol.events import CaseFinished
from numaproof.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.conformance.differential.recordings import Recording, Source
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@target_options
@click.option(
    "--select", metavar="ID-GLOB", default="*", help="Replay only cases whose id matches."
)
@machines_option
@out_option("numaproof-replay")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def replay(
    file: Path,
    select: str,
    machine_names: Iterable[str],
    out: Path,
    *,
    as_json: bool,
    **target: Any,
) -> int:
    """Replay the cases in a file and show every call, its answer and what is wrong with it.

    FILE is a case file (written by `numaproof fuzz`, from the documentation, or your own) or a file
    of recordings, of which only those with a different answer are shown.

    \b
    Examples:
      numaproof replay numaproof-report/findings/fuzz-0f3c9a12.yaml
      numaproof replay finding.yaml --implementation "./kubelet-1.35 -v=-1"
    """
    source, played = _recordings(file, select)
    cases = () if source else loading.read_file(file)
    with scratch_folder() as trees:
        machines = named_machines(machine_names, trees)

        def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
            chosen = harness_run.target
            if source and source.kubernetes != chosen.kubernetes:
                raise click.UsageError(
                    f"{file} was recorded on Kubernetes {source.kubernetes}, not"
                    f" {chosen.kubernetes}; give --kubernetes {source.kubernetes}"
                )
            runs = runner.select(cases, machines, chosen, select)
            complaint = unmatched(select, cases) if cases else None
            if complaint:
                raise click.UsageError(f"no case in {file} matches --select {complaint}")
            if not runs and not played:
                raise click.UsageError(
                    f"no case in {file} applies to Kubernetes {chosen.kubernetes}"
                    f" at level {chosen.level}"
                )
            return _replayed(check(runs, harness_run, played, every_call=True), harness_run)

        return run_harness(start, target, out, as_json=as_json, calls=True)


def _recordings(file: Path, select: str) -> tuple[Source | None, tuple[Recording, ...]]:
    """The recordings of a file whose names match, and where they come from."""
    if not file.name.endswith(recordings.SUFFIX):
        return None, ()
    source, every = recordings.read(file)
    return source, tuple(one for one in every if fnmatchcase(recording_check.name_of(one), select))


def _replayed(events: Iterator[AnyEvent], harness_run: HarnessRun) -> Iterator[AnyEvent]:
    """The events, in which this command is what runs a case again: the file is not bundled."""
    for event in events:
        if isinstance(event, CaseFinished):
            yield msgspec.structs.replace(event, reproduce=harness_run.command)
        else:
            yield event
