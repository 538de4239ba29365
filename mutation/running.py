"""Tries the mutations of a session on a few workers; a session can be interrupted and resumed."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cosmic_ray import plugins
from cosmic_ray.mutating import use_mutation
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult
from processes import Judge
from results import difference, told

from numaproof.conformance.execution.parallel import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cosmic_ray.work_db import WorkDB
    from cosmic_ray.work_item import WorkItem
    from reach import Reach
    from tree import SourceTree


@dataclass
class MutationProgress:
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


def run(
    work: WorkDB, sample: Sequence[WorkItem], tree: SourceTree, reach: Reach, jobs: int
) -> None:
    """Tries what has no result yet, and keeps each result as it comes.

    Raises:
        parallel.WorkerError: a worker failed, for a reason that is not a mutation's.
    """
    done = {job for job, _ in work.results}
    left = [item for item in sample if item.job_id not in done]
    progress = MutationProgress(len(sample), len(left))
    workers = [_MutationWorker(tree, reach, number) for number in range(min(jobs, len(left)))]
    with closing(spread(left, workers)) as results:
        for item, result in results:
            work.set_result(item.job_id, result)
            progress.tell(item, result)


class _MutationWorker:
    """One copy of the package, and the process that checks it."""

    def __init__(self, tree: SourceTree, reach: Reach, number: int) -> None:
        self._tree, self._reach = tree, reach
        self._package = tree.copy_package(tree.folder.parent / f"worker-{number}")
        self._judge = Judge(tree, self._package)

    def do(self, item: WorkItem) -> tuple[WorkItem, WorkResult]:
        """Mutates, checks, and puts the module back."""
        return item, self._attempt(item)

    def _attempt(self, item: WorkItem) -> WorkResult:
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
