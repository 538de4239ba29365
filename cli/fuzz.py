"""`numaproof fuzz`: generated nodes and call sequences."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from numaproof.campaigns import conduct
from numaproof.conformance.fuzzing import example_databases
from numaproof.conformance.fuzzing import fuzz as fuzzing
from numaproof.conformance.fuzzing.budget import REPEAT_EVERY, Budget, FuzzOptions
from numaproof.durations import Duration
from numaproof.outputs import out_option
from numaproof.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.execution.stream import Campaign
    from numaproof.protocol.events import AnyEvent

_DEFAULT_EXAMPLES = 200
_DEFAULT_DATABASE = ".numaproof/examples"


@click.command()
@target_options
@click.option(
    "--profile",
    type=click.Choice(("ci", "explore")),
    default="ci",
    show_default=True,
    help="ci: the same examples each time. explore: new ones each time, those that failed"
    " before first.",
)
@click.option(
    "--max-examples",
    type=click.IntRange(1),
    help=f"Examples to make; {_DEFAULT_EXAMPLES} where no time is given either.",
)
@click.option(
    "--max-time",
    type=Duration(),
    help="Time to spend, such as 90s, 5m or 1h; how far that gets is not the same each time.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Same seed, same examples; 0 with --profile ci, else a new one.",
)
@click.option(
    "--database",
    envvar="NUMAPROOF_DATABASE",
    metavar="DIRECTORY|URL",
    help="Where explore keeps examples that failed, and looks first: a directory, or a Redis"
    " server as redis://HOST:PORT/DB, rediss://... or unix://SOCKET.  [default:"
    f" {_DEFAULT_DATABASE}; also NUMAPROOF_DATABASE, for an address with a password]",
)
@click.option(
    "--repeat",
    type=click.IntRange(0),
    default=REPEAT_EVERY,
    show_default=True,
    metavar="N",
    help="Play one in N passing examples again, in a new process, and compare; 0 for none.",
)
@out_option("numaproof-report")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    *,
    profile: str,
    max_examples: int | None,
    max_time: float | None,
    seed: int | None,
    database: str | None,
    repeat: int,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Generate machines, configurations and call sequences until something breaks.

    A failure is shrunk and written to OUT/findings as a case file for `numaproof replay`. It is
    played again first: if the same calls are then answered differently, the outcome is
    `nondeterministic`, with both answers side by side.

    With --profile ci two runs do the same and report the same, but for the times.

    \b
    Examples:
      numaproof fuzz --implementation "./my-driver"
      numaproof fuzz --implementation "./my-driver" --max-examples 1000 --seed 1
      numaproof fuzz --implementation "./my-driver" --profile explore --max-time 1h
      numaproof fuzz --profile explore --database redis://localhost:6379/0
    """
    if max_examples is None and max_time is None:
        max_examples = _DEFAULT_EXAMPLES
    explore = profile == "explore"
    typed = ctx.get_parameter_source("database") is ParameterSource.COMMANDLINE
    if typed and not explore:
        raise click.UsageError("--database needs --profile explore: ci is the same each time")
    try:
        kept = example_databases.opened(database or _DEFAULT_DATABASE) if explore else None
    except example_databases.DatabaseError as error:
        raise click.BadParameter(str(error), param_hint="--database") from None
    added: tuple[str, ...] = ()
    if seed is None:
        seed = random.SystemRandom().getrandbits(32) if explore else 0
        added = ("--seed", str(seed))
    chosen = seed
    budget = Budget(max_examples, max_time)
    options = FuzzOptions(kept, repeat)

    def start(campaign: Campaign) -> Iterator[AnyEvent]:
        return fuzzing.fuzz(campaign, budget, chosen, out / "findings", options)

    return conduct(start, target, out, as_json=as_json, added=added)
