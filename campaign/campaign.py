"""Runs a campaign from its first unit to its last, and journals every result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from numaproof.campaign.worker import UnitResult
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.campaign.journal import Journal
    from numaproof.protocol.campaign import Unit, UnitFinished

_SHOWN = 3
"""Failed units that the end names."""


class ClusterError(Exception):
    """The workers cannot be reached; the message says why."""


@dataclass(frozen=True)
class FailedUnit:
    """A unit that could not be done; this says nothing about the implementation."""

    unit: Unit
    why: str


class UnitExecutor(Protocol):
    """Does units."""

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Does units and yields their results, in any order.

        Raises:
            ClusterError: it cannot continue.
        """


def run(
    journal: Journal, units: Callable[[], Iterable[Unit]], workers: UnitExecutor
) -> Iterator[UnitFinished]:
    """Has every remaining unit done, and yields each once it is in the journal.

    Once all are done, the first scenario of each signature is shrunk. A unit that fails stays
    undone until the campaign is resumed, and leaves it incomplete.

    Args:
        journal: where it goes, and what is in it already.
        units: makes the units of the plan, in its order.
        workers: who does them.

    Raises:
        ClusterError: the workers cannot continue; the results so far are kept.
    """
    failed: list[FailedUnit] = []
    yield from _run_units(journal, units(), workers, failed)
    if not failed:
        yield from _run_units(journal, journal.finished_units.shrinks(), workers, failed)
    if failed:
        shown = [f"{one.unit.id}: {one.why}" for one in failed[:_SHOWN]]
        more = [f"and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
        count = plural(len(failed), "unit")
        message = f"{count} could not be done: {'; '.join((*shown, *more))}"
        journal.end(complete=False, message=message)
    else:
        journal.end(complete=True)


def _run_units(
    journal: Journal, units: Iterable[Unit], workers: UnitExecutor, failures: list[FailedUnit]
) -> Iterator[UnitFinished]:
    left = (unit for unit in units if unit.id not in journal.finished_units.done_units)
    for result in workers.do(left):
        if not isinstance(result, UnitResult):
            failures.append(result)
        elif kept := journal.add(result):
            yield kept
