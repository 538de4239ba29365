"""Tries the mutations of a session on a few workers; a session can be left and gone on with."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import TYPE_CHECKING

from cosmic_ray import plugins
from cosmic_ray.mutating import use_mutation
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult
from processes import Judge
from results import difference, told

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cosmic_ray.work_db import WorkDB
    from cosmic_ray.work_item import WorkItem
    from reach import Reach
    from tree import Tree


@dataclass
class Progress:
    """Says after each mutation how many are done, and about how long the rest takes."""

    total: int
    left: int
    began: float = field(default_factory=time.monotonic)
    done: int = 0

    def tell(self, item: WorkItem, result: WorkResult) -> None:
        """One line for one mutation."""
        self.done += 1
        each = (time.monotonic() - self.began) / self.done
        minutes = each * (self.left - self.done) / 60
        at = self.total - self.left + self.done
        sys.stdout.write(f"[{at}/{self.total}, {minutes:.0f} min left] {told(item, result)}\n")
        sys.stdout.flush()


def run(work: WorkDB, sample: Sequence[WorkItem], tree: Tree, reach: Reach, jobs: int) -> None:
    """Tries what has no result yet, and keeps each result as it comes.

    Raises:
        RuntimeError: a worker failed, for a reason that is not a mutation's.
    """
    done = {job for job, _ in work.results}
    left = [item for item in sample if item.job_id not in done]
    progress = Progress(len(sample), len(left))
    waiting: Queue[WorkItem] = Queue()
    for item in left:
        waiting.put(item)
    results: Queue[tuple[WorkItem, WorkResult] | BaseException] = Queue()
    stop = threading.Event()
    workers = [_Worker(tree, reach, number) for number in range(min(jobs, len(left)))]
    threads = [
        threading.Thread(target=_work, args=(worker, waiting, results.put, stop))
        for worker in workers
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in left:
            match results.get():
                case BaseException() as error:
                    raise RuntimeError("a worker failed") from error
                case item, result:
                    work.set_result(item.job_id, result)
                    progress.tell(item, result)
    finally:
        stop.set()
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()


def _work(
    worker: _Worker,
    waiting: Queue[WorkItem],
    put: Callable[[tuple[WorkItem, WorkResult] | BaseException], None],
    stop: threading.Event,
) -> None:
    try:
        with closing(worker):
            while not stop.is_set():
                item = waiting.get_nowait()
                put((item, worker.attempt(item)))
    except Empty:
        pass
    except BaseException as error:  # noqa: BLE001 - it is raised where the results are awaited
        put(error)


class _Worker:
    """One copy of the package, and the process that checks it."""

    def __init__(self, tree: Tree, reach: Reach, number: int) -> None:
        self._tree, self._reach = tree, reach
        self._package = tree.copy_package(tree.folder.parent / f"worker-{number}")
        self._judge = Judge(tree, self._package)

    def attempt(self, item: WorkItem) -> WorkResult:
        """Mutates, checks, and puts the module back."""
        (mutation,) = item.mutations
        path = self._package / mutation.module_path
        operator = plugins.get_operator(mutation.operator_name)()
        plan = self._reach.plan(self._tree, mutation)
        with use_mutation(path, operator, mutation.occurrence) as (before, after):
            if after is None:
                raise RuntimeError(f"there is no such mutation: {mutation}")
            diff = difference(before, after, mutation.module_path)
            try:
                compile(after, path, "exec")
            except SyntaxError as error:
                return WorkResult(WorkerOutcome.NORMAL, str(error), TestOutcome.INCOMPETENT, diff)
            verdict = self._judge.verdict(plan)
        outcome = TestOutcome.KILLED if verdict.killed else TestOutcome.SURVIVED
        return WorkResult(WorkerOutcome.NORMAL, verdict.by, outcome, diff)

    def stop(self) -> None:
        """Lets a check that is under way fail; what it says of the mutation is not kept."""
        self._judge.kill()

    def close(self) -> None:
        """Ends the process."""
        self._judge.close()
