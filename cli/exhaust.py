"""`numaproof exhaust`: asks every question within a bound."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli.choice import Choice
from numaproof.cli.harness import run_harness
from numaproof.cli.outputs import FINDINGS, out_option
from numaproof.cli.targets import open_target, target_options
from numaproof.conformance.exhaustion.kinds import BOUND_NAMES, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent


@click.command()
@target_options
@click.option(
    "--right", metavar='"CMD ..."', help="Program to compare with, instead of the reference."
)
@click.option(
    "--bound",
    type=Choice(BOUND_NAMES),
    default=BOUND_NAMES[0],
    help="How large machines, hints and lives get; the first line of the output says it in numbers"
    f" (default: {BOUND_NAMES[0]}).",
)
@click.option(
    "--kind",
    "kinds",
    type=Choice(KINDS),
    multiple=True,
    help="Enumerate only these. Repeatable (default: all).",
)
@out_option("exhaust")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def exhaust(
    *,
    right: str | None,
    bound: str,
    kinds: tuple[str, ...],
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Ask every question within a bound.

    Assignments are all sets of free CPUs, all counts and all options on every machine of a few
    CPUs; merges are all lists of hints; lives are all sequences of a few calls on a node. Machines
    that differ only in the order of equal parts count once, and so do lives that lead to the same
    state. The first failure of each cause is the smallest, and is written to OUT/findings as a case
    file for `numaproof replay`.

    \b
    Examples:
      numaproof exhaust --implementation "./my-driver"
      numaproof exhaust --bound medium --kind lives
      numaproof exhaust --implementation "./my-driver" --right "./kubelet-1.37 -v=-1"
    """
    from numaproof.conformance.exhaustion.bounds import BOUNDS
    from numaproof.conformance.exhaustion.exhaust import exhaust as enumerate_all
    from numaproof.conformance.fuzzing.exploration import FOUND

    if right and target["baseline"]:
        raise click.UsageError("--baseline is for the reference; remove it or --right")

    def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
        with ExitStack() as opened:
            other = None
            if right:
                own = {"implementation": right, "kubernetes": harness_run.target.kubernetes}
                other = opened.enter_context(open_target(**target | own))
            yield from enumerate_all(
                harness_run, BOUNDS[bound], kinds or KINDS, out / FINDINGS, other
            )

    return run_harness(start, target, out, as_json=as_json, findings=FOUND)
