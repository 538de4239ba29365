"""Reasons why no call of the protocol can reach some statements, as file and function patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from statements import GoSource, StatementBlock


@dataclass(frozen=True)
class Reason:
    """A reason why no call of the protocol can reach some statements.

    `where` maps file patterns to function patterns. ``NAME: TEXT`` covers only the blocks of
    the
    function whose lines match the regular expression TEXT.
    """

    why: str
    where: dict[str, tuple[str, ...]]

    def covers(self, block: StatementBlock, source: GoSource) -> bool:
        """Returns whether the reason covers a block."""
        return any(
            fnmatchcase(block.file, file) and _is_named(pattern, block, source)
            for file, patterns in self.where.items()
            for pattern in patterns
        )


def _is_named(pattern: str, block: StatementBlock, source: GoSource) -> bool:
    name, _, text = pattern.partition(": ")
    return fnmatchcase(source.function(block), name) and bool(
        not text or re.search(text, source.text(block))
    )


def read_reasons(text: str) -> list[Reason]:
    """Reads reasons from YAML: a list of ``why`` and ``where``."""
    return [
        Reason(
            " ".join(one["why"].split()),
            {file: tuple(patterns) for file, patterns in one["where"].items()},
        )
        for one in yaml.safe_load(text)
    ]
