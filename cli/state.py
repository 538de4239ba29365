"""`numaproof state check`: checks a node's checkpoint file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from numaproof.cli import user_files
from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.commands import SentenceGroup
from numaproof.cli.machine_names import node_machine_option, read_machine
from numaproof.cli.targets import release_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.formats.machines.description import MachineText
    from numaproof.protocol.messages import StartRefused
    from numaproof.simulation import checkpoints
    from numaproof.simulation.documents import ConfigurationFile

TO_FIX = 1


@click.group(cls=SentenceGroup)
def state() -> None:
    """Check a node's checkpoint files.

    \b
    Example:
      numaproof state check memory_manager_state --machine laptop-4c8t
    """


@state.command()
@click.argument("file", type=user_files.USER_FILE, metavar="FILE|DIR", required=False)
@captured_node_option(
    necessary=("file", "machine"),
    machine="machine",
    config="configs",
    state="file",
    release="kubernetes",
)
@node_machine_option
@user_files.config_option("one that fits the file")
@release_option
@user_files.lenient_option
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(
    file: user_files.UserFile,
    machine: str,
    assume: tuple[tuple[str, int], ...],
    configs: tuple[user_files.UserFile, ...],
    kubernetes: str,
    *,
    lenient: bool,
    as_json: bool,
) -> int:
    """Show whether the kubelet would accept the checkpoint FILE, and how to fix it if not.

    FILE is a cpu_manager_state, memory_manager_state or kubelet_internal_checkpoint file. DIR is
    /var/lib/kubelet or a copy, with any of them. Exit codes: 0 nothing to fix, 1 something to fix,
    2 invalid input.

    \b
    Examples:
      numaproof state check cpu_manager_state --machine laptop-4c8t --config kubelet.yaml
      numaproof state check /var/lib/kubelet --machine /
    """
    user_files.check_read_once((file, *configs))
    described = read_machine(machine, kubernetes, assume)
    config = (
        user_files.read_configuration(configs, (kubernetes,), lenient=lenient) if configs else None
    )
    from numaproof.simulation.checkpoints import judge_absence

    files = _files(file)
    found = [_judge(one, described, config, kubernetes) for one in files]
    if files != [file] and config:
        absent = [*judge_absence([one.place.name for one in files], config.settings)]
        files += [user_files.UserFile(str(Path(file.name) / one.kind)) for one in absent]
        found += absent
    for line in described.lines:
        click.echo(line, err=True)
    if as_json:
        read = (*(config.notes if config else ()), *described.lines)
        whole = [replace(one, notes=(*read, *one.notes)) for one in found]
        click.echo(codec.encode(whole if files != [file] else whole[0]))
    else:
        for one, judgement in zip(files, found, strict=True):
            if files != [file]:
                click.echo(f"{one.name}:")
            click.echo("\n".join(_judgement_lines(judgement)))
    return 0 if all(one.good for one in found) else TO_FIX


def _files(place: user_files.UserFile) -> list[user_files.UserFile]:
    """Returns the file, or the checkpoints in a directory.

    Raises:
        click.UsageError: there are none.
    """
    from numaproof.simulation import state_files

    folder = place.place
    if not folder.is_dir():
        return [place]
    found = state_files.paths(folder)
    if not found:
        raise click.UsageError(
            f"{place.name}: no checkpoint files; expected {', '.join(state_files.NAMES)}"
        )
    return [
        user_files.UserFile(str(Path(place.name) / path.relative_to(folder)), path=path)
        for path in found.values()
    ]


def _judge(
    file: user_files.UserFile,
    machine: MachineText,
    config: ConfigurationFile | None,
    kubernetes: str,
) -> checkpoints.Judgement:
    from numaproof.formats.machines.needs import require_enough
    from numaproof.simulation import checkpoints, state_files
    from numaproof.simulation.admission import CannotAnswerError, Question
    from numaproof.workdir.scratch import scratch_folder

    try:
        checkpoint = checkpoints.read(file.read(state_files.MAX_BYTES), Path(file.name).name)
        notes: tuple[str, ...] = ()
        if config is None:
            settings = checkpoints.assumed_config(checkpoint, machine.machine, kubernetes)
            question = Question(machine.machine, settings, kubernetes)
            notes = checkpoints.assumption_notes(settings)
        else:
            question = Question(machine.machine, config.settings, kubernetes, flags=config.flags)
        is_of_cpus = checkpoint.kind == "cpu_manager_state"
        require_enough(machine, question.config, state=is_of_cpus)
        with scratch_folder() as folder:
            found = checkpoints.judge(question, checkpoint, folder)
    except (CannotAnswerError, checkpoints.UnknownFileError) as error:
        raise click.UsageError(f"{file.name}: {error}") from None
    return replace(found, notes=(*notes, *found.notes))


def _judgement_lines(judgement: checkpoints.Judgement) -> Iterator[str]:
    if judgement.refusal:
        yield f"The kubelet does not start ({judgement.refusal.stage}): {judgement.refusal.message}"
    elif judgement.is_absent:
        yield "The kubelet starts without this file, and creates it."
    else:
        yield "The kubelet starts with this file."
    yield from judgement.notes
    for finding in judgement.findings:
        yield f"- {finding}"
    from numaproof.cli.simulate_view import note_lines

    for line in note_lines(judgement.warnings, _outcome):
        yield f"~ {line}"
    if judgement.fix:
        yield f"To fix: {'; '.join(judgement.fix)}."


def _outcome(refusal: StartRefused | None) -> str:
    return "the kubelet does not start" if refusal else "the kubelet starts"
