"""`numaproof campaign`: runs cases and generated scenarios on many workers."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from numaproof.cli import targets
from numaproof.cli.choice import Choice, IntRange
from numaproof.cli.known_failure_options import KnownFailureOptions, known_failures_options
from numaproof.cli.machine_names import machines_option, named_machines
from numaproof.cli.outputs import clear_findings, out_option
from numaproof.cli.selecting import select_options, selection
from numaproof.conformance.exhaustion.kinds import BOUND_NAMES
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType

    from numaproof.campaign.cluster import WorkerPool
    from numaproof.campaign.journal import Journal
    from numaproof.campaign.planning import CampaignSpec, Job
    from numaproof.campaign.summary import FinishedUnits
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.campaign import CampaignSummary
    from numaproof.reports.campaign import CampaignProgress


_TLS = (
    ("--tls-ca-file", "authority", "CA certificate that the cluster trusts"),
    ("--tls-cert", "certificate", "Client certificate for the scheduler"),
    ("--tls-key", "key", "Private key of --tls-cert, if it is in a separate file"),
)


scheduler_options = targets.all_of(
    click.option(
        "--scheduler",
        metavar="tls://HOST:PORT",
        help="Dask scheduler to use (default: a local one).",
    ),
    *(
        click.option(
            name,
            argument,
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"{what} (default: from Dask's configuration).",
        )
        for name, argument, what in _TLS
    ),
    click.option(
        "--insecure",
        is_flag=True,
        help="Use a scheduler without TLS. Anyone who can connect to it can run code as you.",
    ),
    click.option(
        "--workers",
        type=IntRange(1),
        help="Number of worker processes on this machine (default: one per core).",
    ),
)
"""The options that `workers_opener` takes, for local workers or a cluster."""

_WORKERS = ("scheduler", "authority", "certificate", "key", "insecure", "workers")


def workers_opener(
    *,
    scheduler: str | None,
    authority: Path | None,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    workers: int | None,
) -> Callable[[Job], AbstractContextManager[WorkerPool]]:
    """Returns a function that opens the workers named by the options.

    Raises:
        click.UsageError: the options contradict each other, a scheduler without TLS lacks
            --insecure, or the TLS files are invalid.
        click.ClickException: a package of the extra `campaign` is not installed.
    """
    cluster = _import_extra("numaproof.campaign.cluster")
    tls = (authority, certificate, key)
    if scheduler is None:
        if insecure or any(tls):
            raise click.UsageError(
                "--insecure and the --tls options need --scheduler; local workers always use TLS"
                " with a temporary key"
            )
        _import_extra("cryptography")  # makes the key
        here = workers or len(os.sched_getaffinity(0))
        return lambda job: cluster.local_workers(job, here)
    if workers:
        raise click.UsageError(
            "--workers starts local workers, but --scheduler uses the cluster's workers; remove"
            " one of the two"
        )
    if not scheduler.startswith("tls://"):
        if not insecure:
            raise click.UsageError(
                f"{scheduler!r} does not use TLS, so anyone who can connect to it can run code as"
                " you; start Dask with its --tls options and give --scheduler tls://HOST:PORT, or"
                " accept the risk with --insecure"
            )
        if any(tls):
            raise click.UsageError("the --tls options need --scheduler tls://HOST:PORT")
        return lambda job: cluster.remote_workers(job, scheduler, None)
    if insecure:
        raise click.UsageError("--insecure contradicts tls:// in --scheduler; remove --insecure")
    try:
        security = cluster.credentials(*tls)
    except cluster.CredentialsError as error:
        raise click.UsageError(str(error)) from None
    return lambda job: cluster.remote_workers(job, scheduler, security)


def _import_extra(name: str) -> ModuleType:
    """Imports a module that needs the `campaign` extra.

    Raises:
        click.ClickException: the extra is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"campaigns need the package {error.name}; run pip install 'numaproof[campaign]'"
        ) from None


_SEEDS = range(10_000)
_SHRINKS = 50

_CASES_PER_UNIT = 200
_SEEDS_PER_UNIT = 50
"""With these sizes, a unit takes about a second against the reference."""

_CASES_PER_KUBELET_UNIT = 10
_SEEDS_PER_KUBELET_UNIT = 2
"""With these sizes, a unit takes about a minute against a kubelet."""

_LIVES_PER_LINEAGE = 1000
"""Long enough that most scenarios follow others; a few minutes against a program."""


@click.command()
@targets.program_option(
    "Program that speaks the protocol, installed on every worker (default: the reference)."
)
@targets.kubelet_options(kubelet="implementation")
@targets.timeout_option
@targets.release_choice(
    "--kubernetes",
    "releases",
    multiple=True,
    help="Kubernetes release to test against (default: the newest that the program claims)."
    " Repeatable.",
)
@targets.level_option(
    "How closely to compare answers (default: the level that the program claims)."
)
@targets.baseline_option
@select_options
@click.option("--no-cases", is_flag=True, help="Run only generated scenarios.")
@machines_option("Run cases only on this machine: a bundled profile, a glob or a file. Repeatable.")
@click.option(
    "--seeds",
    type=targets.SeedRangeParam(),
    default=_SEEDS,
    help="Seeds for the generated scenarios (default: 0:10000).",
)
@click.option("--no-seeds", is_flag=True, help="Generate no scenarios.")
@click.option(
    "--guided",
    "is_guided",
    is_flag=True,
    help="Continue from scenarios that reached new code. The program must claim `coverage`.",
)
@click.option(
    "--exhaust",
    "bound",
    type=Choice(BOUND_NAMES),
    help="Also enumerate everything within this bound, like `numaproof exhaust`.",
)
@scheduler_options
@click.option(
    "--cases-per-unit",
    type=IntRange(1),
    help=f"Number of cases per unit of work (default: {_CASES_PER_UNIT}, or"
    f" {_CASES_PER_KUBELET_UNIT} with --kubelet).",
)
@click.option(
    "--seeds-per-unit",
    type=IntRange(1),
    help=f"Number of scenarios per unit of work (default: {_SEEDS_PER_UNIT}, or"
    f" {_SEEDS_PER_KUBELET_UNIT} with --kubelet, {_LIVES_PER_LINEAGE} with --guided).",
)
@click.option(
    "--shrink",
    "shrinks",
    type=IntRange(0),
    default=_SHRINKS,
    help=f"Number of distinct failures to shrink into case files (default: {_SHRINKS}).",
)
@known_failures_options
@click.option("--fresh", is_flag=True, help="Start over, discarding the previous run in OUT.")
@out_option(
    "campaign",
    ("events.jsonl", "summary.json", "summary.txt"),
    "events.jsonl, summary.json, summary.txt, a page for each release and findings",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def campaign(
    *,
    timeout: float,
    releases: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    no_cases: bool,
    machine_names: Iterable[str],
    seeds: range,
    no_seeds: bool,
    is_guided: bool,
    bound: str | None,
    cases_per_unit: int | None,
    seeds_per_unit: int | None,
    shrinks: int,
    failure_options: KnownFailureOptions,
    fresh: bool,
    out: Path,
    as_json: bool,
    **target: Any,
) -> int:
    """Run cases and generated scenarios on many workers, locally or on a cluster.

    If a campaign is interrupted, run the same command again to resume it. Failures with the same
    signature count as one finding. The first scenario of each finding is shrunk to a case file in
    OUT/findings.

    \b
    Examples:
      numaproof campaign --seeds 0:100000
      numaproof campaign --no-cases --no-seeds --exhaust medium
      numaproof campaign --no-cases --guided --implementation "./instrumented -v=-1"
      numaproof campaign --implementation "./my-driver" --kubernetes 1.35 --kubernetes 1.36
      numaproof campaign --scheduler tls://head:8786 --tls-ca-file ca.pem --tls-cert me.pem
    """
    from numaproof.campaign.journal import Journal
    from numaproof.campaign.planning import CampaignSpec
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance.cases import loading
    from numaproof.conformance.execution import kubelet_command
    from numaproof.conformance.fuzzing.exploration import FOUND
    from numaproof.protocol.campaign import Seeds
    from numaproof.reports.campaign import clear_summary
    from numaproof.workdir.scratch import scratch_folder

    opener = workers_opener(**{name: target.pop(name) for name in _WORKERS})
    if no_cases and (select or exclude):
        raise click.UsageError("--no-cases contradicts --select and --exclude; remove one of them")
    if is_guided and no_seeds:
        raise click.UsageError("--guided contradicts --no-seeds; remove one of them")
    cases = loading.bundled_cases()
    with scratch_folder() as trees:
        opened = _targets(releases, timeout=timeout, **target)
        if is_guided:
            _require_coverage(opened[0])
        sizes = _CASES_PER_UNIT, _SEEDS_PER_UNIT
        if kubelet_command.options(opened[0].command):
            sizes = _CASES_PER_KUBELET_UNIT, _SEEDS_PER_KUBELET_UNIT
        if is_guided:
            sizes = sizes[0], _LIVES_PER_LINEAGE
        spec = CampaignSpec(
            targets=opened,
            cases=cases,
            machines=tuple(named_machines(machine_names, trees)),
            selected_cases=() if no_cases else selection(select, exclude, cases).of(cases),
            seeds=Seeds(0, 0) if no_seeds else Seeds(seeds.start, seeds.stop),
            cases_per_unit=cases_per_unit or sizes[0],
            seeds_per_unit=seeds_per_unit or sizes[1],
            shrinks=shrinks,
            timeout=timeout,
            numaproof=VERSION,
            bound=bound or "",
            is_guided=is_guided,
        )
        if not spec.plan.units:
            raise click.UsageError(
                "nothing to do: no selected case applies, and there are no seeds; change --select,"
                " remove --no-seeds or add --exhaust"
            )
        # Only now: an error above must not delete the results of an earlier run.
        clear_summary(out)
        if fresh:
            clear_findings(out, FOUND)
        began = time.monotonic()
        known = failure_options.known_failures(
            cases, whole=not (no_cases or select or exclude or machine_names)
        )

        def elapsed_seconds() -> float:
            return time.monotonic() - began

        with Journal(out, spec.plan, elapsed_seconds, fresh=fresh, known_failures=known) as journal:
            cut = _conduct(journal, spec, opener(spec.job), sys.stderr if as_json else sys.stdout)
    summary = journal.finished_units.summary()
    code = _report(summary, journal.finished_units, out, cut, as_json=as_json)
    failure_options.write(
        journal.case_runs(), journal.finished_units.causes_of_scenarios(), complete=summary.complete
    )
    return code


def _require_coverage(target: Target) -> None:
    """Checks that a campaign on this target can be guided.

    Raises:
        click.UsageError: the program does not report its coverage.
    """
    if not target.capabilities.has("coverage"):
        raise click.UsageError(
            "--guided needs a program that claims the operation `coverage`, which"
            f" {target.hello.name} {target.hello.version} does not. For the kubelet, build its"
            " adapter with counters: python adapters/kubelet/reach/building.py"
            f" {target.kubernetes} PROGRAM"
        )


def _conduct(
    journal: Journal, spec: CampaignSpec, pool: AbstractContextManager[WorkerPool], stream: TextIO
) -> str:
    """Runs the remaining units and shows progress; returns the reason for stopping early, or ""."""
    from numaproof.campaign.campaign import ClusterError
    from numaproof.reports.campaign import CampaignProgress
    from numaproof.reports.untrusted_text import one_line

    try:
        with CampaignProgress(stream) as progress:
            for damage in journal.damage_notes:
                progress.line(one_line(f"{journal.path}: {damage}; repeating it", 200))
            if journal.finished_units.done_units:
                progress.line(
                    f"resuming after {plural(len(journal.finished_units.done_units), 'unit')}"
                )
            if journal.finished_units.summary().complete:
                journal.end(complete=True)
                return ""
            with pool as workers:
                progress.line(_extent(spec, workers))
                _follow(journal, spec, workers, progress)
    except (KeyboardInterrupt, click.Abort):
        why = "interrupted"
    except ClusterError as error:
        why = str(error)
    else:
        return ""
    journal.end(complete=False, message=why)
    return why


def _follow(
    journal: Journal, spec: CampaignSpec, workers: WorkerPool, progress: CampaignProgress
) -> None:
    from numaproof.campaign.campaign import run
    from numaproof.reports.campaign import Standing

    began, finished = time.monotonic(), journal.finished_units
    for here, _ in enumerate(run(journal, spec.units, workers), 1):
        progress.show(
            Standing(
                units_done=len(finished.done_units),
                total=spec.plan.units + len(finished.shrinks()),
                failures=finished.failures,
                signatures=finished.signatures,
                here=here,
                seconds=time.monotonic() - began,
            )
        )


def _extent(spec: CampaignSpec, workers: WorkerPool) -> str:
    from numaproof.reports.untrusted_text import one_line

    plan = spec.plan
    seeds = (plan.seeds.stop - plan.seeds.first) * len(plan.configurations)
    told = (
        f"numaproof campaign: {one_line(plan.implementation.name, 40)},"
        f" {', '.join(map(str, plan.configurations))}: {plural(plan.runs, 'case run')} and"
        f" {plural(seeds, 'scenario')} in {plural(plan.units, 'unit')},"
        f" {plural(workers.threads, 'worker')}"
    )
    return f"{told}\n{workers.dashboard}" if workers.dashboard else told


def _report(
    summary: CampaignSummary, finished_units: FinishedUnits, out: Path, cut: str, *, as_json: bool
) -> int:
    from numaproof.conformance.requirements import load_registry
    from numaproof.reports import campaign as shown
    from numaproof.reports.board.reading import read_runs
    from numaproof.reports.files import EVENTS
    from numaproof.reports.summary import EXIT_CODES

    shown.write_summary(summary, out)
    registry = tuple(one.event() for one in load_registry().requirements)
    shown.write_pages(read_runs(out / EVENTS, registry), out)
    click.echo(shown.as_json(summary) if as_json else shown.as_text(summary, out), nl=False)
    click.echo(shown.notes_text(finished_units.notes), nl=False, err=as_json)
    if cut:
        click.echo(f"numaproof: {cut}; run the same command to resume", err=True)
    elif not as_json:
        click.echo(f"Reports: {out}")
    if not summary.complete:
        # Even if something failed, so that scripts can resume the campaign until it is complete.
        return EXIT_CODES["incomplete"]
    if summary.has_findings:
        return EXIT_CODES["failed"]
    return EXIT_CODES["nothing tested" if summary.nothing else "passed"]


def _targets(releases: Sequence[str], **options: Any) -> tuple[Target, ...]:
    """Returns a target for each release, according to the program's `hello`.

    Raises:
        click.ClickException: the options do not fit the program, or it did not answer `hello`.
    """
    opened: list[Target] = []
    for release in dict.fromkeys(releases) or (None,):
        with (
            targets.report_failure(log=True),
            targets.open_target(**options, kubernetes=release, patient=True) as target,
        ):
            opened.append(target)
    return tuple(opened)
