"""Lives led by coverage: modified copies of lives that reached rare code follow them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from numaproof.conformance.fuzzing.exploration import on_its_machine
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.genes import life, mutate, new_genes

if TYPE_CHECKING:
    from collections.abc import Collection

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.run import Scenario
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.conformance.fuzzing.generation.genes import Genes

_RAREST = 200
"""The number of blocks, reached by the fewest lives, from which to choose what to reach again."""

_WEIGHT, _LEAST = 0.03, 0.02
"""The weight of the latest life in a yield, and the yield if nothing is reached."""


class Lineage:
    """A sequence of lives; each depends on its seed and on what the lives before it reached.

    Args:
        capabilities: the target's capabilities, which limit the requests.
    """

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._genes: Genes
        self._kind: Literal["new", "copy"] = "new"
        self._lives: Counter[str] = Counter()
        """The number of lives that reached each block."""
        self._shortest: dict[str, Genes] = {}
        """The shortest life that reached each block, because it takes the least time to vary."""
        self._yields = {"new": 1.0, "copy": 1.0}
        """How often each kind of life reaches new code; the latest lives count most."""
        self.kept_lives = 0
        """The number of lives that reached a block before all others."""

    def next(self, seed: int) -> Scenario:
        """Returns the next life: a new one or a modified copy, whichever reaches more lately."""
        choices = Seeded(seed)
        new, copy = self._yields["new"] ** 2, self._yields["copy"] ** 2
        percent = round(100 * copy / (copy + new))
        if self._shortest and choices.integer(1, 100) <= percent:
            self._kind = "copy"
            self._genes = mutate(choices, self._parent(choices), self._parent(choices))
        else:
            self._kind = "new"
            self._genes = new_genes(choices, self._capabilities)
        return on_its_machine(life(self._genes, self._capabilities, f"life-{seed}"))

    def _parent(self, choices: Choices) -> Genes:
        """Chooses a life that reached a rare block, the rarer the likelier."""
        rarest = sorted(self._shortest, key=lambda block: (self._lives[block], block))
        most = choices.integer(0, min(_RAREST, len(rarest)) - 1)
        return self._shortest[rarest[choices.integer(0, most)]]

    def add(self, blocks: Collection[str]) -> None:
        """Adds the blocks that the latest life reached."""
        reaches_new = not self._shortest.keys() >= set(blocks)
        self.kept_lives += reaches_new
        self._yields[self._kind] += (reaches_new + _LEAST - self._yields[self._kind]) * _WEIGHT
        self._lives.update(blocks)
        for block in blocks:
            best = self._shortest.setdefault(block, self._genes)
            if len(self._genes.actions) < len(best.actions):
                self._shortest[block] = self._genes
