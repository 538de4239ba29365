"""The subcommands: where each one lives, and the line that lists it.

A subcommand is loaded when it runs, or when its own help or options are asked for. The list of all
of them, which ``--help`` and completion show, is this table and loads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.renamed import with_new_names

if TYPE_CHECKING:
    from collections.abc import Mapping


COMMANDS = {
    "init": "Write a new adapter with its tests, a tox.ini and a GitHub workflow.",
    "check": "Run every case on every machine it applies to, then the recordings of the real"
    " kubelet.",
    "doctor": "Talk to a program and show what is wrong with each line that it writes.",
    "features": "List the features that an implementation can claim in hello, and the cases that"
    " need each.",
    "fuzz": "Generate machines, configurations and call sequences until something breaks.",
    "diff": "Make the same calls to two implementations and show the first answer that differs.",
    "campaign": "Run cases and generated scenarios on many workers, here or on a cluster.",
    "record": "Play scenarios against an implementation and record its answers.",
    "replay": "Replay the cases in a file and show every call, its answer and what is wrong"
    " with it.",
    "promote": "Turn a finding into a case that expects the reference's answers.",
    "board": "Make a site of the reports of many runs: who meets which requirement, and what"
    " was found.",
    "reference": "Answer the protocol on standard input and output with the reference"
    " implementation.",
    "discover": "Show what the kubelet would discover in ROOT.",
    "case": "List and show the cases.",
    "profile": "List, show, validate and capture machine profiles, and write their trees.",
    "simulate": "Say whether a node would admit pods, what they would get, and if not, why.",
    "state": "Check the checkpoint files of a node.",
    "config": "Check kubelet configuration files.",
    "upgrade": "Say what becomes of a node when its kubelet is upgraded or downgraded, before"
    " you do it.",
}
"""The subcommands of `numaproof` by name, each with the first sentence of its help."""

_PLACES = {
    "reference": "numaproof.cli.serve:reference",
    "discover": "numaproof.cli.profiles:discover",
    "case": "numaproof.cli.case:case_group",
    "profile": "numaproof.cli.profiles:profile",
}
"""Where subcommands live that are not in the module of their name, as `module:name`."""


class SentenceGroup(click.Group):
    """A group that lists each subcommand with the first sentence of its help, however long."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a subcommand."""
        cmd.short_help = cmd.short_help or cmd.get_short_help_str(_LONGEST)
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that the arguments name, and what it is given."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, with_new_names(name or "", rest)


_LONGEST = 200
"""Characters of a first sentence."""


class _Deferred(click.Command):
    """Stands for a subcommand in lists until it is used."""

    def load(self) -> click.Command:
        assert self.name is not None
        place = _PLACES.get(self.name, f"numaproof.cli.{self.name}:{self.name}")
        module, _, name = place.partition(":")
        loaded = getattr(import_module(module), name)
        assert isinstance(loaded, click.Command)
        return loaded


class LazyGroup(click.Group):
    """A group whose subcommands are loaded one at a time, each when it is used."""

    def __init__(self, *args: Any, deferred: Mapping[str, str], **kwargs: Any) -> None:
        """Takes the subcommands with their first sentences, and what a `click.Group` takes."""
        super().__init__(*args, **kwargs)
        for name, summary in deferred.items():
            self.add_command(_Deferred(name, short_help=summary))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that the arguments name, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        rest = with_new_names(name or "", rest)
        return name, command.load() if isinstance(command, _Deferred) else command, rest
