"""Which checks reach a mutation, and in what order they are tried."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sampling import module_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cosmic_ray.work_item import MutationSpec
    from tree import SourceTree

_KINDS = ("case", "test", "recording")
"""The order: cases take milliseconds, tests have to be found first, recordings are the longest."""

_RECORDINGS = 40
"""Of each release, so many that reach a mutation are played at the most."""

_LONG = 1.0
"""Seconds of processor time from which a check is a long one."""

_LEAST_LIMIT = 20.0
_TIMES = 10.0
"""A check may take so many seconds of processor time at the least, or so many times its own.

The first that needs the files of a large machine writes them, which takes seconds.
"""


@dataclass(frozen=True)
class Reach:
    """What a survey found.

    Attributes:
        costs: seconds of processor time of each check, by name.
        lines: the checks that reach a line, as numbers in the order of `costs`, by module and line.
    """

    costs: dict[str, float]
    lines: dict[str, dict[int, list[int]]]

    @classmethod
    def read(cls, file: Path) -> Reach:
        """What `judge.py survey` wrote."""
        found = json.loads(file.read_text(encoding="utf-8"))
        lines = {
            module: {int(line): numbers for line, numbers in lines.items()}
            for module, lines in found["reached"].items()
        }
        return cls(found["costs"], lines)

    def plan(self, tree: SourceTree, mutation: MutationSpec) -> list[tuple[float, str]]:
        """The checks of a mutation with their limits in seconds; those of least reach come first.

        Where no check runs the code but all import it, as with tables, every check is one of it,
        save the few long ones, which are searches and look at no table.
        """
        names = list(self.costs)
        lines = self.lines.get(module_of(mutation), {})
        source = (tree.folder / mutation.module_path).read_text(encoding="utf-8")
        first, last = statement(source, mutation.start_pos[0])
        numbers = {number for line in range(first, last + 1) for number in lines.get(line, ())}
        if not numbers:
            numbers = {n for n, cost in enumerate(self.costs.values()) if cost < _LONG}
        chosen = sorted(
            numbers,
            key=lambda number: (
                _KINDS.index(names[number].split(" ")[0]),
                self._sizes[number],
                number,
            ),
        )
        return [
            (max(_LEAST_LIMIT, _TIMES * self.costs[name]), name)
            for name in _some_recordings([names[number] for number in chosen])
        ]

    @cached_property
    def _sizes(self) -> Counter[int]:
        """How many lines each check reaches."""
        return Counter(
            number
            for lines in self.lines.values()
            for numbers in lines.values()
            for number in numbers
        )


def _some_recordings(names: list[str]) -> Iterator[str]:
    """The checks without most of their recordings; those kept are spread evenly."""
    by_release: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        kind, release, *_ = name.split(" ")
        if kind == "recording":
            by_release[release].append(name)
        else:
            yield name
    for recordings in by_release.values():
        yield from recordings[:: math.ceil(len(recordings) / _RECORDINGS)]


def statement(source: str, line: int) -> tuple[int, int]:
    """The first and last line of the innermost statement at a line; of one with a body, its head.

    What runs at import in a function's head, as decorators and defaults do, is the function's.
    """
    best = (line, line)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt) or node.end_lineno is None:
            continue
        first, last = node.lineno, node.end_lineno
        body = getattr(node, "body", None)
        if isinstance(node, ast.FunctionDef):
            first = min([first, *(one.lineno for one in node.decorator_list)])
            if first <= line < node.body[0].lineno:
                return first, last
        elif body:
            last = max(first, body[0].lineno - 1)
        if first <= line <= last and (first > best[0] or best == (line, line)):
            best = (first, last)
    return best
