"""Distributes work over processes on this machine and yields results in order of completion.

A worker is created once and caches expensive objects between items. It handles one item at a time,
in a separate process or with the help of one. (Campaigns span many machines with changing workers;
they use Dask.)
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import closing, suppress
from multiprocessing import connection, get_context, parent_process
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from numaproof.protocol.garbage import collect_seldom, freeze_at_exit
from numaproof.workdir.scratch import ScratchError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from multiprocessing.connection import Connection

_ENDING = 15.0
"""Seconds that a process has to end after it was terminated, including everything it started."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Item_contra = TypeVar("_Item_contra", contravariant=True)
_Result_co = TypeVar("_Result_co", covariant=True)


class WorkerError(Exception):
    """A worker failed or ended for a reason unrelated to its item."""


class Worker(Protocol[_Item_contra, _Result_co]):
    """Processes items one at a time. Only `stop` may be called from other threads."""

    def do(self, item: _Item_contra) -> _Result_co:
        """Returns the result of an item."""

    def stop(self) -> None:
        """Cancels the current item; its result is dropped."""

    def close(self) -> None:
        """Ends the worker and everything that it started."""


def spread(
    items: Iterable[_Item], workers: Sequence[Worker[_Item, _Result]]
) -> Generator[_Result, None, None]:
    """Yields the result of every item as it completes, and closes the workers at the end.

    Closing the generator early, or an interrupt, cancels the current items.

    Raises:
        ScratchError: a worker has no space for temporary files.
        WorkerError: a worker failed.
    """
    waiting: Queue[_Item] = Queue()
    for item in items:
        waiting.put(item)
    expected = waiting.qsize()
    results: Queue[tuple[_Result] | BaseException] = Queue()
    stopping = threading.Event()
    threads = [
        threading.Thread(target=_work, args=(worker, waiting, results, stopping))
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(expected):
            came = results.get()
            if isinstance(came, ScratchError):
                raise came
            if isinstance(came, BaseException):
                raise WorkerError(f"a worker failed: {came}") from came
            yield came[0]
    finally:
        stopping.set()
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()


def _work(
    worker: Worker[_Item, _Result],
    waiting: Queue[_Item],
    results: Queue[tuple[_Result] | BaseException],
    stopping: threading.Event,
) -> None:
    """The body of a worker's thread."""
    try:
        with closing(worker):
            while not stopping.is_set():
                results.put((worker.do(waiting.get_nowait()),))
    except Empty:
        pass
    except BaseException as error:  # noqa: BLE001 - it is raised where results are awaited
        results.put(error)


class ProcessWorker(Generic[_Item, _Result]):
    """A worker that processes items in a new process, which doesn't outlive this one.

    Args:
        begin: called in the process; returns the function that processes an item.
        args: the arguments of `begin`.
    """

    def __init__(self, begin: Callable[..., Callable[[_Item], _Result]], *args: object) -> None:
        # Spawn a new interpreter, because a fork would copy locks held by other threads.
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        # Not passed as arguments: starting a process that ends before reading them hangs.
        self._begin: tuple[Callable[..., object], object] | None = (begin, args)

    def do(self, item: _Item) -> _Result:
        """Returns the result of an item.

        Raises:
            ScratchError: there is no space for temporary files.
            WorkerError: processing failed, or the process ended.
        """
        try:
            if self._begin is not None:
                self._pipe.send(self._begin)
                self._begin = None
            self._pipe.send(item)
            failed, result = self._pipe.recv()
        except (EOFError, OSError):
            # Raise below, outside this handler: the exception's frames hold the unsent buffer and
            # would keep it alive, which makes Python warn.
            failed, result = True, "its process ended"
        if isinstance(result, ScratchError):
            raise result
        if failed:
            raise WorkerError(str(result))
        done: _Result = result
        return done

    def stop(self) -> None:
        """Terminates the process, which first runs its exit handlers."""
        self._process.terminate()

    def close(self) -> None:
        """Terminates the process and waits for it to end."""
        self.stop()
        self._process.join(_ENDING)
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    freeze_at_exit()
    collect_seldom()
    # A Ctrl-C or hang-up at the terminal reaches every process; only the main one handles it.
    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit_once)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    do: Callable[[Any], Any] | None = None
    with suppress(EOFError):
        begin, args = pipe.recv()
        while True:
            item = pipe.recv()
            try:
                do = do or begin(*args)
                answer = False, do(item)
            except ScratchError as error:
                answer = True, error
            except Exception:  # noqa: BLE001 - any failure is the worker's, reported by `do`
                answer = True, traceback.format_exc()
            pipe.send(answer)


def _exit_once(*_: object) -> None:
    """Exits; further signals must not interrupt the exit handlers."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def _end_with_parent() -> None:
    """Ends this process if its parent is killed, without waiting for the current item."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
