"""The table of subcommands, which are loaded on demand.

``--help`` and shell completion list subcommands from this table, without importing them. A
subcommand is loaded when it runs or shows its own help.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.renamed_options import with_new_names
from numaproof.cli.repeated_options import require_single

if TYPE_CHECKING:
    from collections.abc import Mapping


COMMANDS: dict[str, dict[str, str]] = {
    "Check an implementation": {
        "init": "Create an adapter with its tests, a tox.ini and a GitHub workflow.",
        "doctor": "Check that a program speaks the protocol, and show how to fix problems.",
        "check": "Run every case on every machine it applies to.",
        "fuzz": "Generate machines, configurations and call sequences until something breaks.",
        "exhaust": "Ask every question within a bound.",
        "diff": "Compare two implementations call by call.",
        "replay": "Replay cases and show every call with its answer.",
        "promote": "Turn a finding into a case of your own, or a case into a Go test.",
        "campaign": "Run cases and generated scenarios on many workers, locally or on a cluster.",
        "report": "Compare two runs: what newly fails, what is fixed and what is slower.",
        "board": "Build a website from the reports of many runs.",
    },
    "Run nodes": {
        "simulate": "Show which pods a node would admit and what they would get.",
        "config": "Check a kubelet configuration before you use it.",
        "state": "Check a node's checkpoint files.",
        "upgrade": "Show what a kubelet upgrade or downgrade would change on a node.",
        "discover": "Show what the kubelet discovers on a machine.",
        "profile": "List, show, capture and validate machine profiles.",
    },
    "Work on the suite": {
        "case": "List and show cases.",
        "features": "List the features that an implementation can claim.",
        "schema": "Print a JSON Schema by name, or list the names.",
        "record": "Record an implementation's answers to generated scenarios.",
        "reference": "Serve the reference implementation on standard input and output.",
    },
}
"""The subcommands of `numaproof` by audience, each with the first sentence of its help."""

_PLACES = {
    "reference": "numaproof.cli.serve:reference",
    "discover": "numaproof.cli.profiles:discover",
    "case": "numaproof.cli.case:case_group",
    "profile": "numaproof.cli.profiles:profile",
}
"""Subcommands that are not in the module named after them, as `module:name`."""


class SentenceGroup(click.Group):
    """A group that lists each subcommand with the first sentence of its help, unabridged."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a subcommand."""
        cmd.short_help = cmd.short_help or cmd.get_short_help_str(_LONGEST)
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the named subcommand and its arguments, with renamed options replaced."""
        name, command, rest = super().resolve_command(ctx, args)
        rest = with_new_names(name or "", rest)
        if command is not None:
            require_single(command, rest)
        return name, command, rest


_LONGEST = 200
"""Maximum length of a first sentence."""


class _Deferred(click.Command):
    def load(self) -> click.Command:
        assert self.name is not None
        place = _PLACES.get(self.name, f"numaproof.cli.{self.name}:{self.name}")
        module, _, name = place.partition(":")
        loaded = getattr(import_module(module), name)
        assert isinstance(loaded, click.Command)
        return loaded


class LazyGroup(click.Group):
    """A group that loads each subcommand on first use."""

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any
    ) -> None:
        """Takes a table such as `COMMANDS`, and the arguments of `click.Group`."""
        super().__init__(*args, **kwargs)
        self._sections = sections
        for section in sections.values():
            for name, summary in section.items():
                self.add_command(_Deferred(name, short_help=summary))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the subcommands in the order in which the help lists them."""
        del ctx
        return [name for section in self._sections.values() for name in section]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the subcommands, with one section for each audience."""
        del ctx
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([*section.items()], col_max=12)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Loads the named subcommand; see `SentenceGroup.resolve_command`."""
        name, command, rest = super().resolve_command(ctx, args)
        rest = with_new_names(name or "", rest)
        command = command.load() if isinstance(command, _Deferred) else command
        if command is not None:
            require_single(command, rest)
        return name, command, rest
