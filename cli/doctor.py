"""`numaproof doctor`: checks how well a program speaks the protocol."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from numaproof.cli.outputs import OUTPUT_FILE
from numaproof.cli.targets import Duration, kubelet_argument_option, release_choice, start_hint
from numaproof.protocol import codec
from numaproof.protocol.diagnosis import Diagnosis, HostCheck, KubeletDiagnosis

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@click.argument(
    "command",
    nargs=-1,
    metavar="CMD",
    shell_complete=lambda _ctx, _param, incomplete: [CompletionItem(incomplete, type="file")],
)
@click.option(
    "--timeout",
    type=Duration(),
    default="10s",
    help="Time limit for each answer (default: 10s).",
)
@click.option(
    "--kubelet",
    type=click.Path(exists=True, dir_okay=False),
    help="Kubelet binary to try instead of a program.",
)
@kubelet_argument_option
@release_choice(help="Kubernetes release to try the kubelet as (default: its own).")
@click.option(
    "--transcript",
    type=OUTPUT_FILE,
    help="Write the whole dialogue to this file, with every line in full.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def doctor(
    command: tuple[str, ...],
    timeout: float,
    kubelet: str | None,
    kubelet_arguments: tuple[str, ...],
    kubernetes: str | None,
    *,
    transcript: Path | None,
    as_json: bool,
) -> int:
    """Check that a program speaks the protocol, and show how to fix problems.

    CMD is the program with its arguments, in quotes or after ``--``. Only operations that the
    program claims in ``hello`` are tried. The check takes a few seconds and ends with next steps.
    With --kubelet, it checks whether a kubelet binary can be tested on this host.

    \b
    Examples:
      numaproof doctor "./my-driver --protocol"
      numaproof doctor --timeout 20s -- java -jar driver.jar
      numaproof doctor "./my-driver" --transcript doctor.txt
      sudo numaproof doctor --kubelet /usr/bin/kubelet
    """
    if kubelet is not None:
        _exclude("--kubelet", {"CMD": command, "--transcript": transcript})
        options = _KubeletOptions(kubelet, kubelet_arguments, kubernetes)
        return _try_kubelet(options, timeout, as_json=as_json)
    for name, value in (("kubelet-arg", kubelet_arguments), ("kubernetes", kubernetes)):
        if value:
            raise click.UsageError(f"--{name} needs --kubelet; add it or remove the option")
    if not command:
        raise click.UsageError("nothing to check: give a program's command, or --kubelet PATH")
    from numaproof.reports.console import show, terminal_width
    from numaproof.reports.diagnosis import PLAIN_WIDTH, diagnosis_lines

    diagnosis = _diagnose(_words(command), timeout)
    if transcript:
        _write_transcript(diagnosis, transcript)
    if as_json:
        click.echo(codec.encode(diagnosis))
    else:
        show(diagnosis_lines(diagnosis, terminal_width() or PLAIN_WIDTH), fold=True)
    return 0 if diagnosis.healthy else 1


def _exclude(option: str, others: Mapping[str, object]) -> None:
    for name, value in others.items():
        if value:
            raise click.UsageError(f"{name} and {option} exclude each other; remove one")


def _diagnose(words: tuple[str, ...], timeout: float) -> Diagnosis:
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance.doctor.examination import examine
    from numaproof.conformance.execution.implementation import CannotStartError
    from numaproof.workdir.scratch import require_room, scratch_folder

    try:
        with scratch_folder() as scratch:
            diagnosis = examine(words, timeout, f"numaproof {VERSION}", scratch)
            if not diagnosis.healthy:
                require_room(scratch)
    except CannotStartError as error:
        raise click.UsageError(f"{error}; {start_hint(words[0])}") from None
    return diagnosis


def _write_transcript(diagnosis: Diagnosis, file: Path) -> None:
    from numaproof.cli.metadata import VERSION
    from numaproof.cli.origin import origin_of
    from numaproof.reports import diagnosis as reported
    from numaproof.workdir.output_files import write_file

    platform = origin_of(os.environ).platform
    write_file(file, reported.transcript(diagnosis, f"numaproof {VERSION}", platform))
    click.echo(f"numaproof: the dialogue is in {file}", err=True)


@dataclass(frozen=True)
class _KubeletOptions:
    """A kubelet's path, its further arguments, and the release to try it as; None for its own."""

    path: str
    arguments: tuple[str, ...]
    release: str | None

    def words(self) -> list[str]:
        """The options of other commands for the same kubelet."""
        more = [word for one in self.arguments for word in ("--kubelet-arg", one)]
        return [
            *("--kubelet", self.path),
            *more,
            *(("--kubernetes", self.release) if self.release else ()),
        ]


def _try_kubelet(options: _KubeletOptions, timeout: float, *, as_json: bool) -> int:
    diagnosis = _diagnose_kubelet(options, timeout)
    if as_json:
        click.echo(codec.encode(diagnosis))
        return 0 if diagnosis.healthy else 1
    for one in diagnosis.checks:
        click.echo(f"{'✗' if one.fix else '✓'} {one.name}: {one.state}")
        if one.fix:
            click.echo(f"  → {one.fix}")
    if diagnosis.healthy:
        click.echo(f"\nNext: numaproof check {shlex.join([*options.words(), '--quick'])}")
    return 0 if diagnosis.healthy else 1


def _diagnose_kubelet(options: _KubeletOptions, timeout: float) -> KubeletDiagnosis:
    from numaproof.cli.metadata import VERSION
    from numaproof.kubelet import host
    from numaproof.kubelet.binary import BinaryError, build, identify
    from numaproof.workdir.scratch import scratch_folder

    found = host.checks()
    try:
        kubelet = identify(Path(options.path).resolve(), options.release)
    except BinaryError as error:
        what, _, fix = str(error).partition("; ")
        found.append(HostCheck("kubelet", what, fix or "name another file"))
    else:
        found.append(
            HostCheck("kubelet", f"Kubernetes {kubelet.version}, checked as {kubelet.release}")
        )
        known = ", ".join(f"{name} {value}" for name, value in build(kubelet).items())
        found.append(HostCheck("build", known))
    if not any(one.fix for one in found):
        from numaproof.kubelet.trial import Trial

        with scratch_folder() as scratch:
            trial = Trial(kubelet, options.arguments, timeout, f"numaproof {VERSION}")
            found.append(trial.check(scratch))
    return KubeletDiagnosis(options.path, not any(one.fix for one in found), tuple(found))


def _words(command: tuple[str, ...]) -> tuple[str, ...]:
    if len(command) > 1:
        return command
    try:
        words = tuple(shlex.split(command[0]))
    except ValueError as error:
        raise click.BadParameter(f"{error}; check the quotes", param_hint="CMD") from None
    if not words:
        raise click.BadParameter(
            "the command is empty; expected a program and its arguments", param_hint="CMD"
        )
    return words
