"""`numaproof fuzz`: generated nodes and call sequences."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import click

from numaproof.campaigns import conduct
from numaproof.conformance import fuzz as fuzzing
from numaproof.durations import Duration
from numaproof.outputs import out_option
from numaproof.targets import target_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.campaign import Campaign
    from numaproof.protocol.events import AnyEvent

_DEFAULT_EXAMPLES = 200


@click.command()
@target_options
@click.option(
    "--max-examples",
    type=click.IntRange(1),
    help=f"Examples to make; {_DEFAULT_EXAMPLES} where no time is given either.",
)
@click.option("--max-time", type=Duration(), help="Time to spend, such as 90s, 5m or 1h.")
@click.option("--seed", type=click.IntRange(0), help="Same seed, same examples; else a new one.")
@out_option("numaproof-report")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def fuzz(
    max_examples: int | None,
    max_time: float | None,
    seed: int | None,
    out: Path,
    *,
    as_json: bool,
    **target: Any,
) -> int:
    """Generate machines, configurations and call sequences until something breaks.

    A failure is shrunk and written to OUT/findings as a case file for `numaproof replay`.

    \b
    Examples:
      numaproof fuzz --max-time 5m
      numaproof fuzz --implementation "./my-driver" --max-examples 1000 --seed 1
    """
    if max_examples is None and max_time is None:
        max_examples = _DEFAULT_EXAMPLES
    chosen = random.SystemRandom().getrandbits(32) if seed is None else seed
    seeded = () if seed is not None else ("--seed", str(chosen))
    budget = fuzzing.Budget(max_examples, max_time)

    def start(campaign: Campaign) -> Iterator[AnyEvent]:
        return fuzzing.fuzz(campaign, budget, chosen, out / "findings")

    return conduct(start, target, out, as_json=as_json, added=seeded)
