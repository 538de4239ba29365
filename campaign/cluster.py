"""Workers of Dask's distributed scheduler, that do units of a campaign.

Whoever may talk to a Dask process runs code as its user. So the processes of this machine speak TLS
with a key made for the campaign, which stays in their memory, and serve no web pages.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import distributed

from numaproof.campaign.campaign import ClusterError, FailedUnit
from numaproof.campaign.worker import UnitWorker, WorkerMismatchError
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.protocol.garbage import freeze_at_exit
from numaproof.workdir.scratch import ScratchError, scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.campaign.planning import Job
    from numaproof.campaign.worker import UnitResult
    from numaproof.protocol.campaign import Unit

_WAITING = 3
"""Units given out for each thread of the workers, so that none of them waits for the next."""

_LOOK = 5.0
"""Seconds after which the number of threads is asked for again."""

_FIRST = 60.0
"""Seconds that the first worker may take."""

_STARTS = 5
"""Times that the processes of this machine are started until all of them are there."""

_LOST = (OSError, RuntimeError, CancelledError)
"""What Dask raises where a process that it talks to is gone, or ends before it has begun."""


_FROM_TERMINAL = (signal.SIGINT, signal.SIGHUP)
"""Signals that a terminal sends to every process started from it."""

_NOTHING = logging.CRITICAL + 1
"""A level that nothing has."""


class CredentialsError(Exception):
    """The files for TLS cannot be used; the message says why."""


class _Plugin(distributed.WorkerPlugin):
    """Gives each worker process its `UnitWorker`, and closes it when the process ends."""

    def __init__(self, job: Job, *, ours: bool) -> None:
        self.name = f"numaproof-{job.key}"
        self._job = job
        self._ours = ours
        self._closing = False
        self._worker: UnitWorker | None = None

    def setup(self, worker: distributed.Worker) -> None:
        """Runs in the worker when it starts."""
        freeze_at_exit()
        self._lock = threading.Lock()
        self._folder = Path(worker.local_directory) / f"{self.name}-{os.getpid()}"
        if self._ours and threading.current_thread() is threading.main_thread():
            # An interrupt at the terminal reaches every process; the campaign's own ends them.
            for one in _FROM_TERMINAL:
                signal.signal(one, signal.SIG_IGN)

    def teardown(self, worker: distributed.Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Runs in the worker when it ends."""
        self._closing = True
        with self._lock:
            if self._worker:
                self._worker.close()

    def do(self, unit: Unit) -> UnitResult:
        """Does a unit in this worker, after those that were given to it before."""
        with self._lock:
            if self._worker is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._worker = UnitWorker(self._job, self._folder)
        result = self._worker.do(unit)
        if self._closing:
            # The program was ended under it: what that looks like is no finding.
            raise distributed.Reschedule
        return result


def _do(plugin: str, unit: Unit) -> UnitResult:
    made = distributed.get_worker().plugins[plugin]
    assert isinstance(made, _Plugin)
    return made.do(unit)


class WorkerPool:
    """A connection to workers that know a job.

    Args:
        client: connected to the scheduler.
        job: what the campaign is about.
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
        """Where Dask's own dashboard is; empty where it is not up."""
        self.threads = 0
        """How many units are done at the same time."""
        self._refreshed_at = 0.0
        self._refresh_threads()

    def _refresh_threads(self) -> None:
        now = time.monotonic()
        if not self.threads or now - self._refreshed_at > _LOOK:
            self.threads = sum(self._client.nthreads().values())
            self._refreshed_at = now

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Has units done, and yields their results as they arrive.

        If a worker is lost, another does its units.

        Raises:
            ClusterError: the scheduler is gone.
        """
        out: dict[str, Unit] = {}
        completed = distributed.as_completed()
        try:
            while True:
                self._refresh_threads()
                threads = max(self.threads, 1)
                room = _WAITING * threads - len(out)
                if room >= threads:
                    # Many at once: giving out a single one costs the scheduler as much.
                    given = {self._key(one): one for one in islice(units, room)}
                    if given:
                        completed.update(self._submit(given))
                    out |= given
                if not out:
                    return
                for future in completed.next_batch():
                    yield _collect_result(future, out.pop(str(future.key)))
        except _LOST as error:
            raise ClusterError("the scheduler is gone") from error

    def _submit(self, units: Mapping[str, Unit]) -> Sequence[distributed.Future[Any]]:
        names = [self._plugin.name] * len(units)
        given: Sequence[distributed.Future[Any]] = self._client.map(
            _do, names, [*units.values()], key=[*units], pure=False
        )
        return given

    def _key(self, unit: Unit) -> str:
        # Two clients on one cluster must not be given each other's results.
        return f"{self._plugin.name}-{self._client.id}-{unit.id}"


def _collect_result(future: distributed.Future[Any], unit: Unit) -> UnitResult | FailedUnit:
    """The result of a unit.

    Raises:
        ClusterError: nothing will.
    """
    match future.status:
        case "finished":
            result: UnitResult = future.result()
            return result
        case "error":
            error = future.exception()
            if isinstance(error, WorkerMismatchError | ImplementationFailure | ScratchError):
                # It would say the same of every unit.
                raise ClusterError(f"a worker cannot do its units: {error}")
            return FailedUnit(unit, f"{type(error).__name__}: {error}")
        case _:
            raise ClusterError("the scheduler is gone")


class _WithoutPages:
    """A process of Dask that serves no web pages: any user of the machine could read them."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Does nothing."""


class _Scheduler(_WithoutPages, distributed.Scheduler):
    pass


class _Worker(_WithoutPages, distributed.Worker):
    pass


@contextmanager
def local_workers(job: Job, processes: int) -> Iterator[WorkerPool]:
    """So many worker processes on this machine, ended with the block.

    Raises:
        ClusterError: they do not start, however often it is tried.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        stack.enter_context(_quiet())
        settings = {
            # Dask would look every 10 ms what each process does, for pages that nobody serves here.
            "distributed.worker.profile.enabled": False,
            # Otherwise the scheduler leaves a folder behind in that of all temporary files.
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
                    raise ClusterError(f"the workers do not start: {error}") from error
        yield pool


@contextmanager
def _local_client(folder: Path, processes: int) -> Iterator[distributed.Client]:
    """A client of a scheduler in this process, and of workers in processes of their own."""
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
            cluster = stack.enter_context(
                distributed.SpecCluster(
                    scheduler={"cls": _Scheduler, "options": {**common, "dashboard": False}},
                    workers=dict.fromkeys(range(processes), worker),
                    worker=worker,
                    security=security,
                    silence_logs=logging.CRITICAL,
                )
            )
        yield stack.enter_context(distributed.Client(cluster))


def credentials(
    authority: Path | None, certificate: Path | None, key: Path | None
) -> distributed.Security:
    """What a client shows to a scheduler that asks for TLS, and wants to be shown.

    What is not given is taken from Dask's own configuration; `certificate` may have the key in it.

    Raises:
        CredentialsError: something is missing, or the files do not fit.
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
        raise CredentialsError(f"TLS cannot use these files: {error}") from None
    return security


@contextmanager
def remote_workers(
    job: Job, address: str, security: distributed.Security | None
) -> Iterator[WorkerPool]:
    """The workers of a scheduler, which stay when the block ends.

    Args:
        job: what the campaign is about.
        address: of the scheduler.
        security: as `credentials` makes it; None for a scheduler that lets everybody in.

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
    """Dask says nothing of its own: what there is to say, the campaign says."""
    # Dask gives several of its loggers a level and a handler of their own.
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
    """Processes started meanwhile leave interrupts at the terminal to the campaign itself."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in _FROM_TERMINAL}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
