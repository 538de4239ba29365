"""The subcommands: where each one lives, and the line that lists it.

A subcommand is loaded when it runs, or when its own help or options are asked for. The list of all
of them, which ``--help`` and completion show, is this table and loads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class Place(NamedTuple):
    """Where a subcommand lives, as `module:name`, and the first sentence of its help."""

    reference: str
    summary: str


COMMANDS = {
    "init": Place(
        "numaproof.cli.init:init",
        "Write a new adapter with its tests, a tox.ini and a GitHub workflow.",
    ),
    "check": Place(
        "numaproof.cli.check:check",
        "Run every case on every machine it applies to, then the recordings of the real kubelet.",
    ),
    "doctor": Place(
        "numaproof.cli.doctor:doctor",
        "Talk to a program and show what is wrong with each line that it writes.",
    ),
    "features": Place(
        "numaproof.cli.features:features",
        "List the features that an implementation can claim in hello,"
        " and the cases that need each.",
    ),
    "fuzz": Place(
        "numaproof.cli.fuzz:fuzz",
        "Generate machines, configurations and call sequences until something breaks.",
    ),
    "diff": Place(
        "numaproof.cli.diff:diff",
        "Make the same calls to two implementations and show the first answer that differs.",
    ),
    "campaign": Place(
        "numaproof.cli.campaign:campaign",
        "Run cases and generated scenarios on many workers, here or on a cluster.",
    ),
    "record": Place(
        "numaproof.cli.record:record",
        "Play scenarios against an implementation and record its answers.",
    ),
    "replay": Place(
        "numaproof.cli.replay:replay",
        "Replay the cases in a file and show every call, its answer and what is wrong with it.",
    ),
    "promote": Place(
        "numaproof.cli.promote:promote",
        "Turn a finding into a case that expects the reference's answers.",
    ),
    "board": Place(
        "numaproof.cli.board:board",
        "Make a site of the reports of many runs: who meets which requirement, and what was found.",
    ),
    "reference": Place(
        "numaproof.cli.serve:reference",
        "Answer the protocol on standard input and output with the reference implementation.",
    ),
    "discover": Place(
        "numaproof.cli.discover:discover",
        "Show what the kubelet would discover in ROOT.",
    ),
    "case": Place(
        "numaproof.cli.case:case_group",
        "List and show the cases.",
    ),
    "profile": Place(
        "numaproof.cli.profiles:profile",
        "List, show, validate and capture machine profiles, and write their trees.",
    ),
    "simulate": Place(
        "numaproof.cli.simulate:simulate",
        "Say whether a node would admit pods, what they would get, and if not, why.",
    ),
    "state": Place(
        "numaproof.cli.state:state",
        "Check the checkpoint files of a node.",
    ),
    "config": Place(
        "numaproof.cli.config:config",
        "Check kubelet configuration files.",
    ),
    "upgrade": Place(
        "numaproof.cli.upgrade:upgrade",
        "Say what becomes of a node when its kubelet is upgraded or downgraded, before you do it.",
    ),
}
"""The subcommands of `numaproof` by name."""


class SentenceGroup(click.Group):
    """A group that lists each subcommand with the first sentence of its help, however long."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a subcommand."""
        cmd.short_help = cmd.short_help or cmd.get_short_help_str(_LONGEST)
        super().add_command(cmd, name)


_LONGEST = 200
"""Characters of a first sentence."""


class _Deferred(click.Command):
    """Stands for a subcommand in lists until it is used."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, short_help=place.summary)
        self._place = place

    def load(self) -> click.Command:
        module, _, name = self._place.reference.partition(":")
        loaded = getattr(import_module(module), name)
        assert isinstance(loaded, click.Command)
        return loaded


class LazyGroup(click.Group):
    """A group whose subcommands are loaded one at a time, each when it is used."""

    def __init__(self, *args: Any, deferred: Mapping[str, Place], **kwargs: Any) -> None:
        """Takes where the subcommands live, by name, and what a `click.Group` takes."""
        super().__init__(*args, **kwargs)
        for name, place in deferred.items():
            self.add_command(_Deferred(name, place))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that the arguments name, loaded."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, _Deferred) else command, rest
