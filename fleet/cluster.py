"""Workers of Dask's distributed scheduler, that do units of a campaign."""

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

from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.fleet.campaign import ClusterError, FailedUnit
from numaproof.fleet.worker import UnitWorker, WorkerMismatchError
from numaproof.folders.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.fleet.job import Job
    from numaproof.fleet.worker import UnitResult
    from numaproof.protocol.campaign import Unit

_WAITING = 3
"""Units given out for each thread of the workers, so that none of them waits for the next."""

_LOOK = 5.0
"""Seconds after which the number of threads is asked for again."""

_FIRST = 60.0
"""Seconds that the first worker may take."""


_NOTHING = logging.CRITICAL + 1
"""A level that nothing has."""


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
        self._lock = threading.Lock()
        self._folder = Path(worker.local_directory) / f"{self.name}-{os.getpid()}"
        if self._ours and threading.current_thread() is threading.main_thread():
            # An interrupt at the terminal reaches every process; the campaign's own ends them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def teardown(self, worker: distributed.Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Runs in the worker when it ends."""
        self._closing = True
        with self._lock:
            if self._worker:
                self._worker.close()

    def do(self, unit: Unit) -> UnitResult:
        """Does a unit in this worker."""
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
        self._plugin = _Plugin(job, ours=ours)
        client.register_plugin(self._plugin)
        self._threads = 0
        self._looked = 0.0

    @property
    def dashboard(self) -> str:
        """Where Dask's own dashboard is; empty where it is not up."""
        services = self._client.scheduler_info().get("services", {})
        up = "dashboard" in services and find_spec("bokeh")
        return str(self._client.dashboard_link) if up else ""

    def threads(self) -> int:
        """How many units are done at the same time."""
        now = time.monotonic()
        if not self._threads or now - self._looked > _LOOK:
            self._threads = sum(self._client.nthreads().values())
            self._looked = now
        return self._threads

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Has units done, and yields their results as they arrive.

        If a worker is lost, another does its unit.

        Raises:
            ClusterError: the scheduler is gone.
        """
        out: dict[str, Unit] = {}
        completed = distributed.as_completed()
        try:
            while True:
                threads = max(self.threads(), 1)
                room = _WAITING * threads - len(out)
                if room >= threads:
                    # Many at once: giving out a single one costs the scheduler as much.
                    given = {self._key(one): one for one in islice(units, room)}
                    for future in self._given(given):
                        completed.add(future)
                    out |= given
                if not out:
                    return
                for future in completed.next_batch():
                    yield _come(future, out.pop(str(future.key)))
        except (CancelledError, OSError) as error:
            raise ClusterError("the scheduler is gone") from error

    def _given(self, units: Mapping[str, Unit]) -> Sequence[distributed.Future[Any]]:
        if not units:
            return ()
        names = [self._plugin.name] * len(units)
        given: Sequence[distributed.Future[Any]] = self._client.map(
            _do, names, [*units.values()], key=[*units], pure=False
        )
        return given

    def _key(self, unit: Unit) -> str:
        # Two clients on one cluster must not be given each other's results.
        return f"{self._plugin.name}-{self._client.id}-{unit.id}"


def _come(future: distributed.Future[Any], unit: Unit) -> UnitResult | FailedUnit:
    """The result of one unit.

    Raises:
        ClusterError: nothing will.
    """
    match future.status:
        case "finished":
            result: UnitResult = future.result()
            return result
        case "error":
            error = future.exception()
            if isinstance(error, WorkerMismatchError | ImplementationFailure):
                # It would say the same of every unit.
                raise ClusterError(f"a worker cannot do its units: {error}")
            return FailedUnit(unit, f"{type(error).__name__}: {error}")
        case _:
            raise ClusterError("the scheduler is gone")


@contextmanager
def local_workers(job: Job, processes: int) -> Iterator[WorkerPool]:
    """So many worker processes on this machine, ended with the block."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        stack.enter_context(_quiet())
        with _without_interrupts():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=processes,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    local_directory=str(folder),
                    silence_logs=logging.CRITICAL,
                )
            )
        client = stack.enter_context(distributed.Client(cluster))
        yield WorkerPool(client, job, ours=True)


@contextmanager
def remote_workers(job: Job, address: str) -> Iterator[WorkerPool]:
    """The workers of a scheduler, which stay when the block ends.

    Raises:
        ClusterError: there is no scheduler, or it has no workers.
    """
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        try:
            client = stack.enter_context(distributed.Client(address, timeout=10))
            client.wait_for_workers(1, timeout=_FIRST)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"no workers at {address}: {error}") from None
        yield WorkerPool(client, job, ours=False)


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
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
