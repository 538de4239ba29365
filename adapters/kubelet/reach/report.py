"""What was reached, in figures, and what was not, with the reasons."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reasons import Reason
    from statements import Block, Source

GOALS = {
    "cpumanager": 95,
    "cpumanager/state": 95,
    "cpumanager/topology": 95,
    "memorymanager": 95,
    "memorymanager/state": 95,
    "topologymanager": 95,
    "topologymanager/bitmask": 95,
    "devicemanager": 85,
}
"""Per cent of the statements, by package."""


@dataclass(frozen=True)
class Package:
    """What was reached of a package: numbers of statements."""

    name: str
    statements: int
    reached: int
    explained: int

    @property
    def open(self) -> int:
        """Statements that were not reached and could be."""
        return self.statements - self.reached - self.explained

    @property
    def percent(self) -> float:
        """Of all statements, those that were reached."""
        return 100 * self.reached / self.statements

    @property
    def good(self) -> bool:
        """Whether the goal is reached, or nothing is open."""
        return self.percent >= GOALS[self.name] or not self.open

    def row(self) -> tuple[str, ...]:
        """The figures as texts: of all, and of those that can be reached."""
        reachable = self.statements - self.explained
        return (
            self.name,
            str(self.statements),
            f"{self.percent:.1f} %",
            str(self.explained),
            str(self.open),
            f"{100 * self.reached / reachable:.1f} %" if reachable else "-",
        )


HEADS = ("package", "statements", "reached", "out of reach", "open", "reached of the reachable")


@dataclass(frozen=True)
class Report:
    """A release's blocks, with their source, and the reasons for those not reached.

    `effort` says in words what was run.
    """

    release: str
    version: str
    blocks: list[Block]
    sources: dict[str, Source]
    reasons: list[Reason]
    effort: str = ""

    def reason(self, block: Block) -> Reason | None:
        """Why a block that was not reached can't be; None where nothing says so."""
        source = self.sources[block.file]
        return next((one for one in self.reasons if one.covers(block, source)), None)

    def packages(self) -> list[Package]:
        """The figures of every package with a goal."""
        found: dict[str, list[Block]] = defaultdict(list)
        for block in self.blocks:
            found[block.package].append(block)
        return [
            Package(
                name,
                sum(one.statements for one in found[name]),
                sum(one.statements for one in found[name] if one.reached),
                sum(one.statements for one in found[name] if not one.reached and self.reason(one)),
            )
            for name in GOALS
            if found[name]
        ]

    def unreached(self, reason: Reason | None) -> Iterator[tuple[str, str, str]]:
        """File, function and lines of what was not reached for a reason; None for what is open."""
        lines: dict[tuple[str, str], list[str]] = defaultdict(list)
        for block in self.blocks:
            if block.reached or not block.statements or self.reason(block) is not reason:
                continue
            where = (block.file, self.sources[block.file].function(block))
            same = block.first == block.last
            lines[where].append(str(block.first) if same else f"{block.first}-{block.last}")
        for (file, function), places in lines.items():
            yield file, function, ", ".join(places)

    def text(self) -> str:
        """The figures, and what is open, for a terminal."""
        rows = [HEADS, *(package.row() for package in self.packages())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        left = [f"{file} {name}: {lines}" for file, name, lines in self.unreached(None)]
        return "\n".join([f"Kubernetes {self.version}", *table, "", "open:", *left, ""])

    def page(self) -> str:
        """All of it in Markdown: the figures, then every line not reached below its reason."""
        heading = f"# Coverage of the kubelet {self.version}\n"
        note = (
            f"Made by `NUMAPROOF_KUBELET={self.release} tox run -e kubelet-coverage -- --pages"
            f" docs`{self.effort}.\n"
            "Files are below `pkg/kubelet/cm/`; the numbers are lines of them.\n"
        )
        parts = [heading, note, table(HEADS, (one.row() for one in self.packages()))]
        for reason in (*self.reasons, None):
            found = list(self.unreached(reason))
            if found:
                why = reason.why if reason else "Open: a case could reach these."
                parts += [f"\n## {why}\n", table(("file", "function", "lines"), found)]
        return "\n".join(parts)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [tuple(heads), *map(tuple, rows)]
    lines.insert(1, tuple("---" for _ in lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
