"""A campaign from its first unit to its last: what is left is done, and what comes is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from numaproof.fleet.worker import UnitResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.fleet.journal import Journal
    from numaproof.protocol.campaign import Unit, UnitFinished

_SHOWN = 3
"""Broken units that the end names."""


class ClusterError(Exception):
    """The workers can't be reached, or no more; the message says why."""


@dataclass(frozen=True)
class FailedUnit:
    """A unit that could not be done: nothing about the implementation, which was not asked."""

    unit: Unit
    why: str


class UnitExecutor(Protocol):
    """Whoever does units."""

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Does units and yields what comes of them, in any order.

        Raises:
            ClusterError: it can't go on.
        """


def run(
    journal: Journal, units: Callable[[], Iterable[Unit]], workers: UnitExecutor
) -> Iterator[UnitFinished]:
    """Has every unit done that is not done yet, and yields each as it is kept.

    Once all are done, the first scenario of each signature is made smaller. A unit that can't be
    done is left for another time, when the same is tried again; the campaign is incomplete then.

    Args:
        journal: where it goes, and what is in it already.
        units: makes the units of the plan, in its order.
        workers: who does them.

    Raises:
        ClusterError: the workers can't go on; what came back is kept.
    """
    failed: list[FailedUnit] = []
    yield from _done(journal, units(), workers, failed)
    if not failed:
        yield from _done(journal, journal.finished.shrinks(), workers, failed)
    if failed:
        told = "; ".join(f"{one.unit.id}: {one.why}" for one in islice(failed, _SHOWN))
        journal.end(complete=False, message=f"{len(failed)} units could not be done: {told}")
    else:
        journal.end(complete=True)


def _done(
    journal: Journal, units: Iterable[Unit], workers: UnitExecutor, failed: list[FailedUnit]
) -> Iterator[UnitFinished]:
    left = (unit for unit in units if unit.id not in journal.finished.done)
    for result in workers.do(left):
        if not isinstance(result, UnitResult):
            failed.append(result)
        elif kept := journal.add(result):
            yield kept
