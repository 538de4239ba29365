"""Executes a campaign's units on workers of Dask's distributed scheduler.

Anyone who can connect to a Dask process can run code as its user. Local processes therefore use TLS
with a key that is generated for the campaign and kept in memory, and serve no web pages.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import dask
import distributed

from numaproof.campaign.campaign import ClusterError, FailedUnit
from numaproof.campaign.worker import UnitWorker, WorkerMismatchError
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.protocol.garbage import freeze_at_exit
from numaproof.workdir.scratch import ScratchError, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numaproof.campaign.planning import Job
    from numaproof.campaign.worker import UnitResult
    from numaproof.protocol.campaign import Unit

T = TypeVar("T")

_WAITING = 3
"""Units assigned per worker thread, so that no thread waits for its next unit."""

_LOOK = 5.0
"""Seconds between updates of the number of threads."""

_FIRST = 60.0
"""Seconds to wait for the first worker."""

_STARTS = 5
"""Maximum number of attempts to start the local processes."""

_LOST = (OSError, RuntimeError, CancelledError)
"""Errors that Dask raises if a process is gone, or ends before it is ready."""


_FROM_TERMINAL = (signal.SIGINT, signal.SIGHUP)
"""Signals that a terminal sends to all of its processes."""

_NOTHING = logging.CRITICAL + 1
"""A log level above all others."""


class CredentialsError(Exception):
    """The TLS files cannot be used; the message explains why."""


class _Plugin(distributed.WorkerPlugin):
    """Creates the `UnitWorker` of each worker process, and closes it when the process ends."""

    def __init__(self, job: Job, *, ours: bool) -> None:
        self.name = f"numaproof-{job.key}"
        self._job = job
        self._ours = ours
        self._closing = False
        self._worker: UnitWorker | None = None

    def setup(self, worker: distributed.Worker) -> None:
        freeze_at_exit()
        self._lock = threading.Lock()
        self._folder = Path(worker.local_directory) / f"{self.name}-{os.getpid()}"
        if self._ours and threading.current_thread() is threading.main_thread():
            # The terminal interrupts every process; the campaign's process ends the others.
            for one in _FROM_TERMINAL:
                signal.signal(one, signal.SIG_IGN)

    def teardown(self, worker: distributed.Worker) -> None:  # noqa: ARG002 - Dask's signature
        self._closing = True
        with self._lock:
            if self._worker:
                self._worker.close()

    def do(self, unit: Unit) -> UnitResult:
        """Executes a unit in this worker, after the units assigned to it earlier."""
        with self._lock:
            if self._worker is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._worker = UnitWorker(self._job, self._folder)
        result = self._worker.do(unit)
        if self._closing:
            # The program was killed during the unit, so its failure is not a finding.
            raise distributed.Reschedule
        return result


def _do(plugin: str, unit: Unit) -> UnitResult:
    made = distributed.get_worker().plugins[plugin]
    assert isinstance(made, _Plugin)
    return made.do(unit)


class WorkerPool:
    """A connection to workers that execute the units of a job.

    Args:
        client: the client, connected to the scheduler.
        job: the campaign's job.
        ours: whether the workers were started for this campaign.
    """

    def __init__(self, client: distributed.Client, job: Job, *, ours: bool) -> None:
        self._client = client
        self._job = job
        self._plugin = _Plugin(job, ours=ours)
        client.register_plugin(self._plugin)
        services = client.scheduler_info().get("services", {})
        up = "dashboard" in services and find_spec("bokeh")
        self.dashboard = str(client.dashboard_link) if up else ""
        """The address of Dask's dashboard; empty if it is not running."""
        self.threads = 0
        """The number of units executed at the same time."""
        self._refreshed_at = 0.0
        self._refresh_threads()

    def _refresh_threads(self) -> None:
        now = time.monotonic()
        if not self.threads or now - self._refreshed_at > _LOOK:
            self.threads = sum(self._client.nthreads().values())
            self._refreshed_at = now

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Executes units, and yields their results as they arrive.

        If a worker is lost, another one takes over its units.

        Raises:
            ClusterError: the scheduler can no longer be reached.
        """
        out: dict[str, Unit] = {}
        completed = distributed.as_completed()
        try:
            while True:
                self._refresh_threads()
                threads = max(self.threads, 1)
                room = _WAITING * threads - len(out)
                if room >= threads:
                    # Assign a batch: it costs the scheduler as much as a single unit.
                    given = {self._key(one): one for one in islice(units, room)}
                    if given:
                        completed.update(self._submit(given))
                    out |= given
                if not out:
                    return
                for future in completed.next_batch():
                    yield _collect_result(future, out.pop(str(future.key)))
        except _LOST as error:
            raise ClusterError("the scheduler can no longer be reached") from error

    def _submit(self, units: Mapping[str, Unit]) -> Sequence[distributed.Future[Any]]:
        names = [self._plugin.name] * len(units)
        given: Sequence[distributed.Future[Any]] = self._client.map(
            _do, names, [*units.values()], key=[*units], pure=False
        )
        return given

    def _key(self, unit: Unit) -> str:
        # Two clients of one cluster must not receive each other's results.
        return f"{self._plugin.name}-{self._client.id}-{unit.id}"


def _collect_result(future: distributed.Future[Any], unit: Unit) -> UnitResult | FailedUnit:
    """Returns the result of a unit.

    Raises:
        ClusterError: no other unit can succeed.
    """
    match future.status:
        case "finished":
            result: UnitResult = future.result()
            return result
        case "error":
            error = future.exception()
            if isinstance(error, WorkerMismatchError | ImplementationFailure | ScratchError):
                # Every other unit would fail in the same way.
                raise ClusterError(f"a worker cannot run its units: {error}")
            return FailedUnit(unit, f"{type(error).__name__}: {error}")
        case _:
            raise ClusterError("the scheduler can no longer be reached")


class _WithoutPages:
    """A Dask process that serves no web pages, because any local user could read them."""

    def start_http_server(self, *_: object, **__: object) -> None:
        pass


class _Scheduler(_WithoutPages, distributed.Scheduler):
    pass


class _Worker(_WithoutPages, distributed.Worker):
    pass


@contextmanager
def local_workers(job: Job, processes: int) -> Iterator[WorkerPool]:
    """Starts worker processes on this machine, and stops them at the end of the block.

    Raises:
        ClusterError: the workers do not start after several attempts.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        stack.enter_context(_quiet())
        settings = {
            # Dask would sample each process every 10 ms for web pages that are disabled here.
            "distributed.worker.profile.enabled": False,
            # By default, the scheduler leaves a folder behind among the temporary files.
            "temporary-directory": str(folder),
        }
        stack.enter_context(dask.config.set(settings))
        for left in reversed(range(_STARTS)):
            try:
                with ExitStack() as started:
                    client = started.enter_context(_local_client(folder, processes))
                    pool = WorkerPool(client, job, ours=True)
                    stack.push(started.pop_all())
                break
            except _LOST as error:
                if not left:
                    raise ClusterError(f"cannot start the workers: {error}") from error
        yield pool


@contextmanager
def _local_client(folder: Path, processes: int) -> Iterator[distributed.Client]:
    security = distributed.Security.temporary()
    common = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    worker = {
        "cls": distributed.Nanny,
        "options": {
            **common,
            "worker_class": _Worker,
            "nthreads": 1,
            "local_directory": str(folder),
            "silence_logs": logging.CRITICAL,
        },
    }
    with ExitStack() as stack:
        with _without_interrupts():
            cluster = distributed.SpecCluster(
                scheduler={"cls": _Scheduler, "options": {**common, "dashboard": False}},
                workers=dict.fromkeys(range(processes), worker),
                worker=worker,
                security=security,
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(closed_at_last(cluster))
        yield stack.enter_context(closed_at_last(distributed.Client(cluster)))


@contextmanager
def closed_at_last(process: AbstractContextManager[T]) -> Iterator[T]:
    """Closes a Dask process after the block.

    On a busy machine that can take too long, which must not hide an interrupt. The processes then
    end with this one.
    """
    with ExitStack() as stack:
        try:
            yield stack.enter_context(process)
        finally:
            with suppress(TimeoutError):
                stack.close()


def credentials(
    authority: Path | None, certificate: Path | None, key: Path | None
) -> distributed.Security:
    """Returns the client's TLS settings for a scheduler.

    Missing settings are taken from Dask's own configuration. `certificate` may contain the key.

    Raises:
        CredentialsError: something is missing, or the files are invalid.
    """
    given = {"tls_ca_file": authority, "tls_client_cert": certificate, "tls_client_key": key}
    security = distributed.Security(
        require_encryption=True, **{name: str(file) for name, file in given.items() if file}
    )
    if not all(getattr(security, name) for name in ("tls_ca_file", "tls_client_cert")):
        raise CredentialsError(
            "TLS needs --tls-ca-file, --tls-cert and --tls-key, or distributed.comm.tls in Dask's"
            " configuration"
        )
    try:
        security.get_connection_args("client")
    except OSError as error:
        raise CredentialsError(f"invalid TLS files: {error}") from None
    return security


@contextmanager
def remote_workers(
    job: Job, address: str, security: distributed.Security | None
) -> Iterator[WorkerPool]:
    """Connects to the workers of a scheduler, which keep running after the block.

    Args:
        job: the campaign's job.
        address: the scheduler's address.
        security: the result of `credentials`; None for a scheduler without TLS.

    Raises:
        ClusterError: there is no scheduler, or it has no workers.
    """
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        try:
            client = stack.enter_context(distributed.Client(address, timeout=10, security=security))
            client.wait_for_workers(1, timeout=_FIRST)
            pool = WorkerPool(client, job, ours=False)
        except (*_LOST, ValueError) as error:
            raise ClusterError(f"no workers at {address}: {error}") from None
        yield pool


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask's logs, because the campaign reports everything relevant."""
    # Several of Dask's loggers have their own level and handler.
    names = ("distributed", "tornado", "asyncio")
    loggers = [
        logging.getLogger(name)
        for name in (*names, *logging.root.manager.loggerDict)
        if name.split(".")[0] in names
    ]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(_NOTHING)
    with dask.config.set({"logging.distributed": _NOTHING}):
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Makes processes started in the block ignore interrupts, which the campaign handles."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in _FROM_TERMINAL}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
