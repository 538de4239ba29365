"""`numaproof state check`: checks a node's checkpoint file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli import user_files
from numaproof.cli.commands import SentenceGroup
from numaproof.cli.machine_names import discover_machine, profile_option
from numaproof.cli.targets import release_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import StartRefused
    from numaproof.simulation import checkpoints

TO_FIX = 1


@click.group(cls=SentenceGroup)
def state() -> None:
    """Check a node's checkpoint files.

    \b
    Example:
      numaproof state check memory_manager_state --machine laptop-4c8t
    """


@state.command()
@click.argument("file", type=user_files.USER_FILE)
@profile_option
@user_files.config_option("one that fits the file")
@release_option
@user_files.lenient_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(
    file: user_files.UserFile,
    machine: str,
    configs: tuple[user_files.UserFile, ...],
    kubernetes: str,
    *,
    lenient: bool,
    as_json: bool,
) -> int:
    """Show whether the kubelet would accept the checkpoint FILE, and how to fix it if not.

    FILE is a cpu_manager_state or memory_manager_state file. Exit codes: 0 nothing to fix,
    1 something to fix, 2 invalid input.

    \b
    Example:
      numaproof state check cpu_manager_state --machine laptop-4c8t --config kubelet.yaml
    """
    from msgspec.structs import replace

    from numaproof.simulation import checkpoints
    from numaproof.simulation.admission import CannotAnswerError, Question
    from numaproof.workdir.scratch import scratch_folder

    user_files.check_read_once((file, *configs))
    info = discover_machine(machine, kubernetes)
    with scratch_folder() as folder:
        try:
            checkpoint = checkpoints.read(file.read(checkpoints.MAX_BYTES), Path(file.name).name)
            notes: tuple[str, ...] = ()
            if configs:
                read = user_files.read_configuration(configs, (kubernetes,), lenient=lenient)
                question = Question(info, read.settings, kubernetes, flags=read.flags)
                notes = read.notes
            else:
                settings = checkpoints.assumed_config(checkpoint, info)
                question = Question(info, settings, kubernetes)
            found = checkpoints.judge(question, checkpoint, folder)
            found = replace(found, notes=notes)
        except (CannotAnswerError, checkpoints.UnknownFileError) as error:
            raise click.UsageError(f"{file.name}: {error}") from None
    click.echo(codec.encode(found) if as_json else "\n".join(_judgement_lines(found)))
    return 0 if found.good else TO_FIX


def _judgement_lines(judgement: checkpoints.Judgement) -> Iterator[str]:
    if judgement.refusal:
        yield f"The kubelet does not start ({judgement.refusal.stage}): {judgement.refusal.message}"
    else:
        yield "The kubelet starts with this file."
    for finding in judgement.findings:
        yield f"- {finding}"
    from numaproof.cli.simulate_view import note_lines

    for line in note_lines(judgement.warnings, _outcome):
        yield f"~ {line}"
    if judgement.fix:
        yield f"To fix: {'; '.join(judgement.fix)}."


def _outcome(refusal: StartRefused | None) -> str:
    return "the kubelet does not start" if refusal else "the kubelet starts"
