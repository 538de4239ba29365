"""Parallel workers: every item runs once, failures are reported, and nothing is left behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance.execution.parallel import ProcessWorker, WorkerError, spread
from numaproof.workdir.scratch import ScratchError, require_room


def powers(base: int = 2) -> ProcessWorker[int, int]:
    """Its process doesn't import test modules."""
    return ProcessWorker(partial, pow, base)


class Counter:
    """A worker without a process."""

    def __init__(self, most: int | None = None) -> None:
        self.done_items: list[int] = []
        self.stop_event = threading.Event()
        self.is_closed = False
        self._most = most

    def do(self, item: int) -> int:
        if len(self.done_items) == self._most:
            self.stop_event.wait(60)
        self.done_items.append(item)
        return item

    def stop(self) -> None:
        self.stop_event.set()

    def close(self) -> None:
        self.is_closed = True


def test_every_item_is_done_once() -> None:
    found = spread(range(20), [powers(), powers()])
    assert sorted(found) == [2**item for item in range(20)]


def test_a_failed_worker_ends_the_run() -> None:
    with pytest.raises(WorkerError, match="unsupported operand"):
        list(spread(["one"], [ProcessWorker[Any, int](partial, pow, 2)]))


def test_a_full_temporary_disk_is_not_a_failed_worker(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(7 << 19))
    with pytest.raises(ScratchError, match=f"{small_disk}: No space left on device"):
        list(spread([small_disk], [ProcessWorker[Path, None](partial, require_room)]))


def test_unsent_items_are_dropped_after_a_failure() -> None:
    with closing(ProcessWorker[int, None](partial, os._exit)) as worker:
        for _ in ("cannot be received", "cannot be sent"):
            with pytest.raises(WorkerError, match="its process ended") as caught:
                worker.do(0)
            assert caught.value.__cause__ is caught.value.__context__ is None


def test_leaving_early_does_not_wait() -> None:
    quick, slow = Counter(), Counter(most=0)
    found = spread(range(10), [quick, slow])
    next(found)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 30
    assert quick.is_closed
    assert slow.is_closed
    assert len(quick.done_items) + len(slow.done_items) <= 10


def test_a_process_is_killed_in_the_middle_of_its_work() -> None:
    sleeping = ProcessWorker[float, None](partial, time.sleep)
    found = spread([0.0, 3600.0], [sleeping])
    next(found)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 30


class Unreadable:
    """Fails to unpickle in another process."""

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        return int, ("1 MiB" + "." * 2**20,)


def test_a_worker_that_cannot_start_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorkerError, match="its process ended"):
        list(spread([1], [ProcessWorker[int, int](partial, pow, Unreadable())]))
    assert "invalid literal for int" in capfd.readouterr().err


def test_a_process_does_not_outlive_its_parent() -> None:
    script = (
        "import time, sys, os; from functools import partial;"
        " from numaproof.conformance.execution.parallel import ProcessWorker;"
        " worker = ProcessWorker(partial, time.sleep);"
        " print(worker._process.pid, flush=True); worker.do(3600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    worker = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert select.select([worker], [], [], 30)[0]
    os.close(worker)
