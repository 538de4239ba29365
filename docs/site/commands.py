"""The command-line reference, generated from the commands' help."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

from numaproof.cli.kubectl_plugin import collect
from numaproof.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator


def command_reference() -> str:
    """Returns the page: every command with its help, examples and options."""
    lines = ["# Commands", "", "Every command explains itself: `numaproof COMMAND --help`."]
    plugin = (("kubectl", "numaproof"), collect)
    for path, command in (*_commands(cli, ("numaproof",)), plugin):
        lines += ["", *_section(path, command)]
    return "\n".join(lines) + "\n"


def _commands(
    group: click.Group, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _section(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    yield f"## {' '.join(path)}"
    yield ""
    yield f"    {' '.join((' '.join(path), *command.collect_usage_pieces(context)))}"
    yield ""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            head, *rest = paragraph.removeprefix("\b\n").splitlines()
            yield from (head, "", *(f"    {line.strip()}" for line in rest), "")
        else:
            yield from (paragraph, "")
    rows = [one.get_help_record(context) for one in command.get_params(context)]
    shown = [row for row in rows if row]
    if shown:
        yield from ("| option | meaning |", "|---|---|")
        yield from (f"| {_code(name)} | {_cell(text)} |" for name, text in shown)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("  ", " ")
