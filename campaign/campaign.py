"""Runs a campaign from its first unit to its last, and records every result in the journal."""

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
"""Maximum number of failed units to name in the final message."""


class ClusterError(Exception):
    """The workers cannot be reached; the message explains why."""


@dataclass(frozen=True)
class FailedUnit:
    """A unit that a worker could not finish, for reasons unrelated to the implementation."""

    unit: Unit
    why: str


class UnitExecutor(Protocol):
    """Executes units."""

    def do(self, units: Iterator[Unit]) -> Iterator[UnitResult | FailedUnit]:
        """Executes units and yields their results, in any order.

        Raises:
            ClusterError: execution cannot continue.
        """


def run(
    journal: Journal, units: Callable[[], Iterable[Unit]], workers: UnitExecutor
) -> Iterator[UnitFinished]:
    """Executes all remaining units, and yields each one once it is in the journal.

    The first scenario of each signature is then shrunk. Failed units are retried when the campaign
    is resumed; until then, it is incomplete.

    Args:
        journal: stores the results, and holds the results of earlier runs.
        units: returns the plan's units, in order.
        workers: executes them.

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
        message = f"{count} failed: {'; '.join((*shown, *more))}"
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
