"""`numaproof replay`: replays cases and shows every call."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.case import case_of
from numaproof.cli.harness import run_harness
from numaproof.cli.machine_names import machines_option, named_machines
from numaproof.cli.outputs import out_option, repeat_option
from numaproof.cli.selecting import complete_case, select_options, selection
from numaproof.cli.targets import target_options
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from click.shell_completion import CompletionItem

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.differential.recordings import Recording, Source
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.events import AnyEvent


def _complete(
    ctx: click.Context,
    param: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file"), *complete_case(ctx, param, incomplete)]


@click.command()
@click.argument("what", metavar="FILE|CASE-ID", shell_complete=_complete)
@target_options
@select_options
@machines_option()
@repeat_option
@out_option("replay")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def replay(
    *,
    what: str,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    machine_names: Iterable[str],
    repeat: int,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Replay cases and show every call with its answer.

    FILE is a case file (such as one written by `numaproof fuzz`) or a file of recordings. CASE-ID
    names a bundled case, which runs on --machine or on the first machine it applies to, or a
    bundled recording for the release (recorded-...). Recordings are shown only if an answer
    differs.

    \b
    Examples:
      numaproof replay numaproof-report/fuzz/findings/fuzz-0f3c9a12.yaml
      numaproof replay finding.yaml --implementation "./kubelet-1.35 -v=-1"
      numaproof replay static-gives-what-the-limit-says --machine laptop-4c8t
    """
    from numaproof.conformance.cases.loading import locate_errors
    from numaproof.conformance.check import CheckOptions, check
    from numaproof.conformance.execution import runner
    from numaproof.workdir.scratch import scratch_folder

    played = _ReplaySource.read(what, target["kubernetes"] or NEWEST)
    wanted = selection(select, exclude, (*played.cases, *played.recordings), where=played.where)
    with locate_errors(played.own), played.locate_errors(), scratch_folder() as trees:
        machines = named_machines(machine_names, trees)

        def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
            chosen = harness_run.target
            played.check_release(chosen)
            runs = runner.select(wanted.of(played.cases), machines, chosen)
            if not (played.file or machine_names):
                runs = runs[:1]
            recorded = wanted.of(played.recordings)
            if not runs and not recorded:
                raise click.UsageError(
                    f"no case{played.where} applies to these machines at level {chosen.level} for"
                    f" Kubernetes {chosen.kubernetes}; choose another --machine or --kubernetes"
                )
            return check(
                runs, harness_run, recorded, CheckOptions(every_call=True, times=repeat, jobs=1)
            )

        return run_harness(
            start,
            target,
            out,
            as_json=as_json,
            calls=True,
            files=played.files,
            repeat=repeat,
        )


@dataclass(frozen=True)
class _ReplaySource:
    """The cases or recordings to replay, and where they come from."""

    cases: tuple[Case, ...] = ()
    recordings: tuple[Recording, ...] = ()
    source: Source | None = None
    file: str = ""

    @classmethod
    def read(cls, what: str, kubernetes: str) -> _ReplaySource:
        """Reads a file of cases or recordings, or finds a bundled case or recording.

        Args:
            what: the file or the id.
            kubernetes: the release of a bundled recording.

        Raises:
            click.UsageError: no file, case or recording has this name.
        """
        from numaproof.conformance.cases import loading
        from numaproof.conformance.differential import recordings

        file = Path(what)
        if not file.exists() and what.startswith(recordings.PREFIX):
            return cls._bundled_recording(what, kubernetes)
        if not file.exists():
            return cls(cases=(_bundled_case(what),))
        if file.name.endswith(recordings.SUFFIX):
            source, every = recordings.read(file)
            return cls(recordings=tuple(every), source=source, file=what)
        return cls(cases=loading.read_file(file), file=what)

    @classmethod
    def _bundled_recording(cls, name: str, kubernetes: str) -> _ReplaySource:
        from numaproof.conformance.differential import recordings

        file = recordings.bundled_file(kubernetes)
        source, every = recordings.read(file) if file.is_file() else (None, ())
        found = tuple(one for one in every if one.case_id == name)
        if not found:
            raise click.UsageError(
                f"no file or recording of Kubernetes {kubernetes} is named {name!r};"
                " for another release, give --kubernetes"
            )
        return cls(recordings=found, source=source)

    @property
    def files(self) -> dict[str, str]:
        """Maps the id of each case to its file; empty for bundled cases."""
        names = [one.id for one in self.cases]
        names += [one.case_id for one in self.recordings]
        return dict.fromkeys(names, self.file) if self.file else {}

    @property
    def own(self) -> tuple[Path, ...]:
        """The case file, if it is not bundled."""
        return (Path(self.file),) if self.file and self.cases else ()

    @property
    def where(self) -> str:
        """Where the cases are, for messages; empty for bundled cases."""
        return f" in {self.file}" if self.file else ""

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Adds the file and line to a `CaseError` about a recording.

        Raises:
            RecordingError: the error is about a recording.
            CaseError: the error is about a case.
        """
        from numaproof.conformance.cases.loading import CaseError
        from numaproof.conformance.differential.recordings import RecordingError

        try:
            yield
        except CaseError as error:
            # The first line describes the source of the recordings.
            for line, one in enumerate(self.recordings, 2):
                if one.case.id == error.case:
                    raise RecordingError(f"{self.file}:{line}: {error}") from None
            raise

    def check_release(self, target: Target) -> None:
        """Checks that the recordings and the target have the same release.

        Raises:
            click.UsageError: the releases differ.
        """
        source = self.source
        if source and source.kubernetes != target.kubernetes:
            raise click.UsageError(
                f"{self.file or 'the recording'} is from Kubernetes {source.kubernetes}, not"
                f" {target.kubernetes}; give --kubernetes {source.kubernetes}"
            )


def _bundled_case(name: str) -> Case:
    from numaproof.conformance.cases import loading

    if Path(name).suffix or "/" in name:
        raise click.UsageError(f"file {name!r} does not exist; check the path")
    return case_of(name, loading.bundled_cases(), f"file {name!r} does not exist, and ")
