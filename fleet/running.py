"""A campaign from its first unit to its last: what is left is done, and what comes is kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from numaproof.fleet.worker import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.fleet.journal import Journal
    from numaproof.protocol.campaign import Unit, UnitFinished

_SHOWN = 3
"""Broken units that the end names."""


class ClusterError(Exception):
    """The workers can't be reached, or no more; the message says why."""


@dataclass(frozen=True)
class Broken:
    """A unit that could not be done: nothing about the implementation, which was not asked."""

    unit: Unit
    why: str


class Does(Protocol):
    """Whoever does units."""

    def do(self, units: Iterator[Unit]) -> Iterator[Result | Broken]:
        """Does units and yields what comes of them, in any order.

        Raises:
            ClusterError: it can't go on.
        """


def run(
    journal: Journal, units: Callable[[], Iterable[Unit]], workers: Does
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
    broken: list[Broken] = []
    yield from _done(journal, units(), workers, broken)
    if not broken:
        yield from _done(journal, journal.ledger.shrinks(), workers, broken)
    if broken:
        told = "; ".join(f"{one.unit.id}: {one.why}" for one in islice(broken, _SHOWN))
        journal.end(complete=False, message=f"{len(broken)} units could not be done: {told}")
    else:
        journal.end(complete=True)


def _done(
    journal: Journal, units: Iterable[Unit], workers: Does, broken: list[Broken]
) -> Iterator[UnitFinished]:
    left = (unit for unit in units if unit.id not in journal.ledger.done)
    for result in workers.do(left):
        if not isinstance(result, Result):
            broken.append(result)
        elif kept := journal.add(result):
            yield kept
