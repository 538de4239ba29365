"""The report of a sample: figures by module, and every survivor with what is known of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from results import CodeChange, Mutant, MutantOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sampling import Population

GOAL = 0.90
"""The share of mutations that have to be killed."""


@dataclass(frozen=True)
class MutationReport:
    """What a run over a sample found.

    Attributes:
        seed: of the sample.
        size: how many mutations the sample has.
        population: what it was drawn from.
        digest: the state of the tree.
        mutants: those that have been tried, in the order of the sample.
        explanations: why mutations survive.
        stale: explanations of lines that are gone.
    """

    seed: int
    size: int
    population: Population
    digest: str
    mutants: Sequence[Mutant]
    explanations: Mapping[CodeChange, str]
    stale: Sequence[CodeChange]

    @property
    def survivors(self) -> list[Mutant]:
        """Those that no check killed."""
        return [one for one in self.mutants if one.outcome == MutantOutcome.SURVIVED]

    @property
    def unexplained(self) -> list[Mutant]:
        """Survivors of which nobody has said why."""
        return [one for one in self.survivors if one.change not in self.explanations]

    @property
    def share(self) -> float:
        """The share that was killed of those that are Python."""
        tried = sum(one.outcome != MutantOutcome.INVALID for one in self.mutants)
        return 1 - len(self.survivors) / tried if tried else 0.0

    @property
    def problems(self) -> list[str]:
        """What has to be done before this is good; one line each."""
        found = [
            f"survived without an explanation: {one.change.module}:{one.row} {one.change.becomes}"
            for one in self.unexplained
        ]
        found += [f"explained, but gone: {one.module}: {one.line}" for one in self.stale]
        if len(self.mutants) < self.size:
            found.append(f"mutations not tried: {self.size - len(self.mutants)}")
        if self.share < GOAL:
            found.append(f"{self.share:.1%} killed, which is less than {GOAL:.0%}")
        return found

    def summary(self) -> str:
        """One line."""
        counts = Counter(one.outcome for one in self.mutants)
        parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in MutantOutcome)
        explained = len(self.survivors) - len(self.unexplained)
        return (
            f"{len(self.mutants)} mutations: {parts}; {self.share:.1%} killed, "
            f"{explained} of {len(self.survivors)} survivors explained"
        )

    def figures(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "seed": self.seed,
            "sample": self.size,
            "tree": self.digest,
            "places": len(self.population.places),
            "mutations": self.population.mutations,
            "excluded": self.population.excluded,
            "killed_share": round(self.share, 4),
            "unexplained": len(self.unexplained),
            "modules": {name: dict(counts) for name, counts in self._modules().items()},
            "mutants": [
                {
                    "number": one.number,
                    "module": one.change.module,
                    "row": one.row,
                    "within": one.change.within,
                    "operator": one.operator,
                    "line": one.change.line,
                    "becomes": one.change.becomes,
                    "outcome": one.outcome,
                    "by": one.by,
                }
                for one in self.mutants
            ],
        }

    def page(self) -> str:
        """Markdown."""
        rows = "".join(
            f"| `{name}` | {sum(counts.values())} | "
            + " | ".join(str(counts[outcome]) for outcome in MutantOutcome)
            + " |\n"
            for name, counts in self._modules().items()
        )
        left_out = "".join(f"- {count}: {why}\n" for why, count in self.population.excluded.items())
        survivors = "\n".join(self._survivor(one) for one in self.survivors)
        problems = "".join(f"- {one}\n" for one in self.problems)
        return (
            "# Mutations of the reference\n\n"
            f"{self.summary()}.\n\n"
            f"The sample is the first {self.size} of {len(self.population.places)} places in the "
            f"order of seed {self.seed}, with one of the {self.population.mutations} mutations "
            f"each. The tree is `{self.digest[:16]}`.\n\n"
            + (f"## To be done\n\n{problems}\n" if problems else "")
            + "## By module\n\n| Module | Mutations | Killed | Timed out | Survived "
            f"| No Python |\n|---|---:|---:|---:|---:|---:|\n{rows}\n"
            f"## Not mutated\n\n{left_out}\n"
            f"## Survivors\n\n{survivors or 'None.'}\n"
        )

    def write(self, folder: Path) -> None:
        """Writes ``mutation.md`` and ``mutation.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mutation.md").write_text(self.page(), encoding="utf-8")
        figures = json.dumps(self.figures(), indent=1) + "\n"
        (folder / "mutation.json").write_text(figures, encoding="utf-8")

    def _modules(self) -> dict[str, Counter[MutantOutcome]]:
        counts: dict[str, Counter[MutantOutcome]] = {}
        for one in sorted(self.mutants, key=lambda one: one.change.module):
            counts.setdefault(one.change.module, Counter())[one.outcome] += 1
        return counts

    def _survivor(self, one: Mutant) -> str:
        why = self.explanations.get(one.change, "**No explanation yet.**")
        within = f", `{one.change.within}`" if one.change.within else ""
        return (
            f"### {one.change.module}:{one.row}{within}\n\n{why}\n\n"
            f"`{one.operator}`, number {one.number} of the sample:\n\n"
            f"```diff\n{one.diff}\n```\n"
        )
