"""The options that say where a campaign's units are done: on this machine, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType

    from numaproof.fleet.cluster import WorkerPool
    from numaproof.fleet.job import Job

F = TypeVar("F", bound=Callable[..., Any])

_TLS = (
    ("--tls-ca-file", "authority", "Certificate of the authority that the cluster trusts"),
    ("--tls-cert", "certificate", "Certificate to show to the scheduler"),
    ("--tls-key", "key", "Key of that certificate, if it is in another file"),
)


def scheduler_options(command: F) -> F:
    """Adds the options that `workers_opener` takes to a command."""
    options = (
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
                help=f"{what} (default: Dask's configuration).",
            )
            for name, argument, what in _TLS
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="Use a scheduler without TLS: whoever reaches its port runs code as you.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1),
            help="Worker processes on this machine (default: one for each core).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def workers_opener(
    *,
    scheduler: str | None,
    authority: Path | None,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    workers: int | None,
) -> Callable[[Job], AbstractContextManager[WorkerPool]]:
    """What opens the workers that the options name.

    Raises:
        click.UsageError: the options do not go together, the scheduler lets everybody in and the
            user did not say so, or the files for TLS do not fit.
        click.ClickException: a package of the extra `campaign` is not installed.
    """
    cluster = _installed("numaproof.fleet.cluster")
    tls = (authority, certificate, key)
    if scheduler is None:
        if insecure or any(tls):
            raise click.UsageError(
                "--insecure and the --tls options are for --scheduler: workers of this machine"
                " speak TLS with a key of their own"
            )
        _installed("cryptography")  # makes the key
        here = workers or len(os.sched_getaffinity(0))
        return lambda job: cluster.local_workers(job, here)
    if workers:
        raise click.UsageError(
            "--workers starts workers on this machine; with --scheduler, the cluster has its own"
        )
    if not scheduler.startswith("tls://"):
        if not insecure:
            raise click.UsageError(
                f"{scheduler!r} is without TLS: whoever reaches it runs code as you. Start Dask"
                " with its --tls options and name it tls://HOST:PORT, or give --insecure"
            )
        if any(tls):
            raise click.UsageError("the --tls options need a scheduler tls://HOST:PORT")
        return lambda job: cluster.remote_workers(job, scheduler, None)
    if insecure:
        raise click.UsageError("a scheduler tls://HOST:PORT asks for TLS: leave out --insecure")
    try:
        security = cluster.credentials(*tls)
    except cluster.CredentialsError as error:
        raise click.UsageError(str(error)) from None
    return lambda job: cluster.remote_workers(job, scheduler, security)


def _installed(name: str) -> ModuleType:
    """A module that is there only with the extra `campaign`.

    Raises:
        click.ClickException: what it needs is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"campaigns need the package {error.name}: pip install 'numaproof[campaign]'"
        ) from None
