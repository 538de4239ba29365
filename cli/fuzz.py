"""`numaproof fuzz`: tests an implementation with generated scenarios."""

from __future__ import annotations

import gc
import random
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from numaproof.cli.choice import IntRange
from numaproof.cli.harness import run_harness
from numaproof.cli.known_failure_options import KnownFailureOptions, known_failures_options
from numaproof.cli.outputs import FINDINGS, out_option
from numaproof.cli.targets import Duration, target_options
from numaproof.conformance.fuzzing.fuzz_options import REPLAY_EVERY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent

_DEFAULT_EXAMPLES = 200
_DEFAULT_DATABASE = ".numaproof/examples"


@click.command()
@target_options
@click.option(
    "--explore",
    is_flag=True,
    help="Generate new examples in every run, after replaying those that failed before (default:"
    " the same examples in every run).",
)
@click.option(
    "--examples",
    "max_examples",
    type=IntRange(1),
    help=f"Number of examples (default: {_DEFAULT_EXAMPLES}, or no limit with --max-time).",
)
@click.option(
    "--max-time",
    type=Duration(),
    help="Time limit, such as 90s, 5m or 1h. The last tenth is reserved for shrinking."
    " The number of examples then varies from run to run.",
)
@click.option(
    "--seed",
    type=IntRange(0),
    help="Seed for the examples (default: 0, or random with --explore).",
)
@click.option(
    "--database",
    envvar="NUMAPROOF_DATABASE",
    metavar="DIRECTORY|URL",
    help="Where --explore keeps failing examples: a directory, or a Redis server as"
    " redis://HOST:PORT/DB, rediss://... or unix://SOCKET. Use NUMAPROOF_DATABASE for a URL with a"
    f" password (default: {_DEFAULT_DATABASE}).",
)
@click.option(
    "--keep-going",
    is_flag=True,
    help="Continue after a finding until examples or time run out; each cause is reported once.",
)
@click.option(
    "--replay-every",
    type=IntRange(0),
    default=REPLAY_EVERY,
    metavar="N",
    help="Replay one in every N passing examples in a new process and compare the answers; 0"
    f" replays none (default: {REPLAY_EVERY}).",
)
@known_failures_options
@out_option("fuzz")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    *,
    explore: bool,
    max_examples: int | None,
    max_time: float | None,
    seed: int | None,
    database: str | None,
    keep_going: bool,
    replay_every: int,
    failure_options: KnownFailureOptions,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Generate machines, configurations and call sequences until something breaks.

    Each failure is replayed, shrunk and written to OUT/findings as a case file for `numaproof
    replay`. If a replay gets different answers, the outcome is `nondeterministic` and the report
    shows both answers side by side.

    Without --explore, repeated runs give the same results.

    \b
    Examples:
      numaproof fuzz --implementation "./my-driver"
      numaproof fuzz --implementation "./my-driver" --examples 1000 --seed 1
      numaproof fuzz --implementation "./my-driver" --explore --max-time 1h
      numaproof fuzz --explore --database redis://localhost:6379/0
    """
    from numaproof.conformance.fuzzing import example_databases
    from numaproof.conformance.fuzzing import fuzz as fuzzing
    from numaproof.conformance.fuzzing.exploration import FOUND
    from numaproof.conformance.fuzzing.fuzz_options import Budget, FuzzOptions

    if max_examples is None and max_time is None:
        max_examples = _DEFAULT_EXAMPLES
    typed = ctx.get_parameter_source("database") is ParameterSource.COMMANDLINE
    if typed and not explore:
        raise click.UsageError(
            "--database needs --explore; without it, every run plays the same examples"
        )
    try:
        kept = example_databases.open_database(database or _DEFAULT_DATABASE) if explore else None
    except example_databases.DatabaseError as error:
        raise click.BadParameter(str(error), param_hint="--database") from None
    added: tuple[str, ...] = ()
    if seed is None:
        seed = random.SystemRandom().getrandbits(32) if explore else 0
        added = ("--seed", str(seed))
    chosen = seed
    budget = Budget(max_examples, max_time)
    options = FuzzOptions(
        kept, replay_every, keep_going=keep_going, known_failures=failure_options.known_failures()
    )

    def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
        gc.freeze()  # Loaded modules live on, so Python need not search them for garbage.
        return fuzzing.fuzz(harness_run, budget, chosen, out / FINDINGS, options)

    return run_harness(
        start,
        target,
        out,
        as_json=as_json,
        extra_options=added,
        findings=FOUND,
        afterwards=failure_options.write_from,
    )
