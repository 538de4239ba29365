"""Items of work spread over the workers of this machine; results come in the order they are done.

A worker is opened once and keeps what is expensive to make from one item to the next. It does one
item at a time, in a process of its own or beside one. (Campaigns go over many machines, where
workers come and go; theirs are Dask's.)
"""

from __future__ import annotations

import signal
import threading
import traceback
from contextlib import closing, suppress
from multiprocessing import get_context
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from numaproof.protocol.garbage import collect_seldom, freeze_at_exit
from numaproof.workdir.scratch import ScratchError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from multiprocessing.connection import Connection

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Item_contra = TypeVar("_Item_contra", contravariant=True)
_Result_co = TypeVar("_Result_co", covariant=True)


class WorkerError(Exception):
    """A worker failed or ended, for a reason that is no result of its item."""


class Worker(Protocol[_Item_contra, _Result_co]):
    """Does items one after another; called by one thread, but for `stop`."""

    def do(self, item: _Item_contra) -> _Result_co:
        """The result of one item."""

    def stop(self) -> None:
        """Cuts short what is under way, from any thread; its result is dropped."""

    def close(self) -> None:
        """Ends the worker and all that it has started."""


def spread(
    items: Iterable[_Item], workers: Sequence[Worker[_Item, _Result]]
) -> Generator[_Result, None, None]:
    """Yields the result of every item as it comes, and closes the workers at the end.

    Whoever closes the generator early, or is interrupted, stops what is under way.

    Raises:
        ScratchError: a worker has no room for temporary files.
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
    """What the thread of a worker does."""
    try:
        with closing(worker):
            while not stopping.is_set():
                results.put((worker.do(waiting.get_nowait()),))
    except Empty:
        pass
    except BaseException as error:  # noqa: BLE001 - it is raised where results are awaited
        results.put(error)


class ProcessWorker(Generic[_Item, _Result]):
    """A worker whose items are done in a fresh process.

    Args:
        begin: makes, in the process, the function that does an item.
        args: what `begin` is called with.
    """

    def __init__(self, begin: Callable[..., Callable[[_Item], _Result]], *args: object) -> None:
        # A fresh interpreter: a fork would copy the threads' locks in whatever state they are.
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        # Not among the arguments: to start a process that ends before it has read them never ends.
        self._begin: tuple[Callable[..., object], object] | None = (begin, args)

    def do(self, item: _Item) -> _Result:
        """The result of one item.

        Raises:
            ScratchError: there is no room for temporary files.
            WorkerError: doing it failed, or the process ended.
        """
        try:
            if self._begin is not None:
                self._pipe.send(self._begin)
                self._begin = None
            self._pipe.send(item)
            failed, result = self._pipe.recv()
        except (EOFError, OSError):
            # Raised below, without this one: its frames hold the buffer that was to be sent, which
            # would outlive them, and whose end Python complains of then.
            failed, result = True, "its process ended"
        if isinstance(result, ScratchError):
            raise result
        if failed:
            raise WorkerError(str(result))
        done: _Result = result
        return done

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self._process.terminate()

    def close(self) -> None:
        """Ends the process."""
        self.stop()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    freeze_at_exit()
    collect_seldom()
    # A Ctrl-C at the terminal, or its end, reaches every process; the first alone decides what it
    # means.
    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
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
            except Exception:  # noqa: BLE001 - any failure is the worker's, told where it is awaited
                answer = True, traceback.format_exc()
            pipe.send(answer)
