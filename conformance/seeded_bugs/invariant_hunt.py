"""Hunting with the invariants alone for a bug that lives for the whole run.

Elsewhere a bug is there only while the seeded reference answers. Here nothing in the process is
healthy: the generators, the player and the invariants run with the bug too, no oracle is asked
and no case says what to expect. What is still caught, invariants that judge for themselves catch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.fuzzing.exploration import Explorer
from numaproof.conformance.seeded_bugs import hunting
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.conformance.seeded_bugs.seeding import Bug


@dataclass(frozen=True)
class CatchingScenario:
    """The scenario that caught a bug.

    Attributes:
        scenarios: how many were played, the one that caught it included.
        seed: of that scenario.
        invariant: the name of the first invariant that it broke.
        message: what broke it.
    """

    scenarios: int
    seed: int
    invariant: str
    message: str


def hunt(bug: Bug, seeds: Iterable[int], scratch: Path) -> CatchingScenario | None:
    """Plays scenarios with a bug in the whole process until one breaks an invariant.

    Args:
        bug: what is hunted.
        seeds: of the scenarios.
        scratch: an empty folder for state directories.

    Returns:
        The first scenario that broke an invariant for no known defect; None where none did.
    """
    with bug.seeded():
        explorer = Explorer(hunting.target(InProcess(Reference), bug.kubernetes), scratch)
        for number, seed in enumerate(seeds, 1):
            played = explorer.play_seed(seed)
            violations = played.run.player.violations
            if violations and played.broken == violations[-1].invariant:
                first = violations[0]
                return CatchingScenario(number, seed, first.invariant, first.message)
    return None
