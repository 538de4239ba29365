"""`numaproof schema`: prints JSON Schemas."""

from __future__ import annotations

from typing import NamedTuple

import click

from numaproof.cli.choice import Choice


class Output(NamedTuple):
    """The output of some commands; `version` increases when a field is renamed or removed."""

    name: str
    commands: tuple[str, ...]
    version: int = 1

    @property
    def file(self) -> str:
        """The name of the schema's file in the documentation."""
        return f"{self.name}.v{self.version}.json"

    @property
    def what(self) -> str:
        """What the schema describes."""
        lines = {"protocol": "a line of the protocol", "events": "a line of `events.jsonl`"}
        commands = (f"numaproof {name} --json" for name in self.commands)
        return lines.get(self.name) or " and ".join(commands)


PROTOCOL = Output("protocol", ())
"""The protocol's requests and responses, whose schema is ``protocol/schema.json``."""
OUTPUTS = (
    PROTOCOL,
    Output("events", ()),
    Output("run", ("check", "fuzz", "exhaust", "diff", "replay")),
    Output("report", ("report",)),
    Output("campaign", ("campaign",)),
    Output("doctor", ("doctor",)),
    Output("kubelet", ("doctor --kubelet",)),
    Output("board", ("board",)),
    Output("simulate", ("simulate",)),
    Output("config", ("config check",)),
    Output("state", ("state check",)),
    Output("upgrade", ("upgrade",)),
    Output("discover", ("discover",)),
    Output("profiles", ("profile list",)),
    Output("cases", ("case list",)),
    Output("features", ("features",)),
)


@click.command()
@click.argument(
    "name", type=Choice([one.name for one in OUTPUTS]), required=False, metavar="[NAME]"
)
def schema(*, name: str | None) -> None:
    """Print a JSON Schema by name, or list the names.

    \b
    Examples:
      numaproof schema
      numaproof schema protocol > protocol.json
    """
    if name is None:
        for one in OUTPUTS:
            click.echo(f"{one.name:10} {one.what}")
        return
    from numaproof.cli.json_schemas import text

    click.echo(text(next(one for one in OUTPUTS if one.name == name)), nl=False)
