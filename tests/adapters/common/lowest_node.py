"""A node whose allocator takes the lowest CPUs, even those in use if `greedy`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ledger import Ledger

from protocol import Refusal, serve

if TYPE_CHECKING:
    from pathlib import Path

HELLO = {
    "protocol": 1,
    "name": "lowest-node",
    "version": "1",
    "language": "Python",
    "kubernetes": ["1.37"],
    "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["static"]},
    "options": {},
    "features": ["container-removal", "restart"],
}


class Lowest:
    def start(self, _: Any, allocatable: set[int], held_cpus: list[set[int]], _at: Path) -> None:
        self._free = allocatable - {cpu for own in held_cpus for cpu in own}
        self._greedy = "greedy" in sys.argv

    def take(self, count: int) -> set[int]:
        if count > len(self._free):
            raise Refusal("too few")
        taken = set(sorted(self._free)[:count])
        if not self._greedy:
            self._free -= taken
        return taken

    def give_back(self, cpus: set[int]) -> None:
        self._free |= cpus


serve(HELLO, Ledger(Lowest()).handlers())
