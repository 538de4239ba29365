"""Finds the reached statements of the kubelet's managers, using Go's profile and the source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANAGERS = "k8s.io/kubernetes/pkg/kubelet/cm/"

COUNTED = {"devicemanager": frozenset({"manager.go", "topology_hints.go"})}
"""The files to count in packages that are not counted as a whole."""


@dataclass(frozen=True, order=True)
class StatementBlock:
    """Statements that always run together: lines of a file below ``pkg/kubelet/cm/``."""

    file: str
    first: int
    last: int
    statements: int
    is_reached: bool

    @property
    def package(self) -> str:
        """The folder of the file."""
        return str(Path(self.file).parent)


_BLOCK = re.compile(r"(.+):(\d+)\.\d+,(\d+)\.\d+ (\d+) (\d+)")


def read_profile(text: str) -> list[StatementBlock]:
    """Reads the counted blocks of a Go text profile in source order."""
    blocks = []
    for line in _counted_lines(text):
        file, first, last, statements, count = _BLOCK.fullmatch(line).groups()  # type: ignore[union-attr]
        name = file.removeprefix(MANAGERS)
        blocks.append(StatementBlock(name, int(first), int(last), int(statements), count != "0"))
    return sorted(blocks)


def reached_blocks(text: str) -> frozenset[str]:
    """Returns the file, lines and columns of each counted block that was reached."""
    return frozenset(
        line.partition(" ")[0] for line in _counted_lines(text) if not line.endswith(" 0")
    )


def _counted_lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines()[1:] if _counts(line.partition(":")[0]))


@cache
def _counts(file: str) -> bool:
    if not file.startswith(MANAGERS):
        return False
    path = Path(file.removeprefix(MANAGERS))
    return path.name in COUNTED.get(str(path.parent), {path.name})


@dataclass(frozen=True)
class GoSource:
    """The lines of a Go file."""

    lines: Sequence[str]

    @cached_property
    def functions(self) -> list[str]:
        """The function of each line, as ``Name`` or ``Type.Name``."""
        names, current = [], ""
        for line in self.lines:
            if begun := _FUNCTION.match(line):
                receiver, name = begun.groups()
                current = f"{receiver}.{name}" if receiver else name
            names.append(current)
        return names

    def function(self, block: StatementBlock) -> str:
        """Returns the function that contains a block."""
        return self.functions[block.first - 1]

    def text(self, block: StatementBlock) -> str:
        """Returns the lines of a block."""
        return "\n".join(self.lines[block.first - 1 : block.last])


_FUNCTION = re.compile(r"func (?:\(\w*\s*\*?(\w+)(?:\[.*?\])?\) )?(\w+)")
