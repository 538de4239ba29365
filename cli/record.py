"""`numaproof record`: saves an implementation's answers in a file."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from numaproof.cli import targets
from numaproof.cli.choice import Date
from numaproof.cli.outputs import OUTPUT_FILE, require_new
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.execution.run import Target

_SCENARIOS = range(300)
_MERGES = range(500)
_TOGETHER = 25
"""Number of merges in each case."""

_UNSUPPORTED = "not supported"


@click.command()
@targets.program_option("Program that speaks the protocol.", required=True)
@click.option(
    "--out",
    type=OUTPUT_FILE,
    required=True,
    help="File to create, such as kubelet-1.36.jsonl.xz.",
)
@click.option(
    "--seeds",
    type=targets.SeedsParam(),
    default=_SCENARIOS,
    help="Seeds for the scenarios, such as 0:300 or 3,7:9 (default: 0:300).",
)
@click.option(
    "--merges",
    type=targets.SeedsParam(),
    default=_MERGES,
    help="Seeds for merges of topology hints (default: 0:500).",
)
@targets.release_choice(
    help="Kubernetes release to record (default: the newest that the program claims)."
)
@click.option(
    "--date",
    type=Date(),
    metavar="YYYY-MM-DD",
    help="Date to record in the file (default: today).",
)
@targets.timeout_option
def record(
    *,
    implementation: str,
    out: Path,
    seeds: Sequence[int],
    merges: Sequence[int],
    kubernetes: str | None,
    date: dt.datetime | None,
    timeout: float,
) -> int:
    """Record an implementation's answers to generated scenarios.

    The file contains xz-compressed JSON lines: first the program, its release and the date, then
    one recording per line. Scenarios that are unsupported or that break the program are skipped
    with a note. If every scenario is skipped, no file is written and the exit code is 2.

    \b
    Examples:
      numaproof record --implementation "./kubelet-1.36 -v=-1" --out kubelet-1.36.jsonl.xz
      numaproof record --implementation ./my-driver --seeds 0:50 --merges 0:1 --out mine.jsonl.xz
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance.differential import recordings
    from numaproof.conformance.differential.recordings import FORMAT, Source
    from numaproof.workdir.scratch import require_room, scratch_folder

    require_new(out)
    day = (date or dt.datetime.now(dt.UTC)).date().isoformat()
    with (
        targets.report_failure(),
        targets.open_target(implementation, timeout, kubernetes) as target,
        scratch_folder() as scratch,
    ):
        skipped: Counter[str] = Counter()
        kept = list(_record(target, seeds, merges, scratch, skipped))
        require_room(scratch)
        source = Source(
            format=FORMAT,
            name=target.hello.name,
            version=target.hello.version,
            language=target.hello.language,
            kubernetes=target.kubernetes,
            numaproof=VERSION,
            recorded_on=day,
        )
    if not kept:
        raise click.ClickException(f"nothing was recorded: {_reasons(skipped, len(kept))}")
    recordings.write(out, source, kept)
    if skipped:
        click.echo(_reasons(skipped, len(kept)), err=True)
    calls = sum(len(one.calls) for one in kept)
    click.echo(
        f"{out}: {plural(len(kept), 'case')}, {plural(calls, 'call')}, "
        f"{out.stat().st_size // 1024} KiB, "
        f"{source.name} {source.version} for Kubernetes {source.kubernetes}, {day}"
    )
    return 0


_MAX_REASONS = 5


def _reasons(skip_reasons: Counter[str], recorded_count: int) -> str:
    count = skip_reasons.total()
    common = skip_reasons.most_common(_MAX_REASONS)
    listed = [f"{why} ({times:,})" for why, times in common]
    if rest := count - sum(times for _, times in common):
        listed.append(f"other reasons ({rest:,})")
    cases = plural(count + recorded_count, "case")
    return f"skipped {count:,} of {cases}: {'; '.join(listed)}"


def _record(
    target: Target,
    seeds: Sequence[int],
    merges: Sequence[int],
    scratch: Path,
    skip_reasons: Counter[str],
) -> Iterator[Recording]:
    """Records scenarios and merges; counts the skipped ones by reason in `skip_reasons`."""
    from numaproof.conformance.differential import recordings
    from numaproof.conformance.execution.implementation import ImplementationFailure
    from numaproof.reports.terminal import Bar

    groups = [merges[first : first + _TOGETHER] for first in range(0, len(merges), _TOGETHER)]
    work: list[int | Sequence[int]] = [*seeds, *groups]
    with Bar(sys.stderr, None, "scenarios and groups of merges") as bar:
        for done, one in enumerate(work):
            bar.move(done, len(work), "recorded")
            name = f"scenario {one}" if isinstance(one, int) else f"merges {one[0]}"
            try:
                made = (
                    recordings.record_seed(target, one, scratch)
                    if isinstance(one, int)
                    else recordings.record_merges(target, one, scratch)
                )
            except ImplementationFailure as failure:
                made, why = None, str(failure)
            else:
                why = "" if made else _UNSUPPORTED
            if made is None:
                bar.line(f"skipped {name}: {why}")
                skip_reasons[why] += 1
            else:
                yield made
