"""`numaproof doctor`: checks how well a program speaks the protocol."""

from __future__ import annotations

import shlex

import click
from click.shell_completion import CompletionItem

from numaproof.cli.targets import Duration, start_hint
from numaproof.protocol import codec


@click.command()
@click.argument(
    "command",
    nargs=-1,
    required=True,
    metavar="CMD",
    shell_complete=lambda _ctx, _param, incomplete: [CompletionItem(incomplete, type="file")],
)
@click.option(
    "--timeout",
    type=Duration(),
    default="10s",
    help="Time limit for each answer (default: 10s).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def doctor(command: tuple[str, ...], timeout: float, *, as_json: bool) -> int:
    """Check that a program speaks the protocol, and show how to fix problems.

    CMD is the program with its arguments, in quotes or after ``--``. Only operations that the
    program claims in ``hello`` are tried. The check takes a few seconds and ends with next steps.

    \b
    Examples:
      numaproof doctor "./my-driver --protocol"
      numaproof doctor --timeout 20s -- java -jar driver.jar
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance.doctor.examination import examine
    from numaproof.conformance.execution.implementation import CannotStartError
    from numaproof.reports.console import show, terminal_width
    from numaproof.reports.diagnosis import PLAIN_WIDTH, diagnosis_lines
    from numaproof.workdir.scratch import require_room, scratch_folder

    words = _words(command)
    try:
        with scratch_folder() as scratch:
            diagnosis = examine(words, timeout, f"numaproof {VERSION}", scratch)
            if not diagnosis.healthy:
                require_room(scratch)
    except CannotStartError as error:
        raise click.UsageError(f"{error}; {start_hint(words[0])}") from None
    if as_json:
        click.echo(codec.encode(diagnosis))
    else:
        show(diagnosis_lines(diagnosis, terminal_width() or PLAIN_WIDTH), fold=True)
    return 0 if diagnosis.healthy else 1


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
