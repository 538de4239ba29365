"""Options of `numaproof diff`, and the kinds of scenarios that it generates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LIFE = "life"
"""Scenarios in one release: the life of a node."""

START = "start"
"""Scenarios in one release: a start with something unusual."""

FILE = "file"
"""Scenarios in one release: a start with damaged or inconsistent checkpoints."""

TREE = "tree"
"""Scenarios without a node: discovery of a tree, often an unusual one."""

UPGRADE = "upgrade"
"""Scenarios in two releases: an upgrade or downgrade of a node."""

TRIES = 24
"""The maximum number of runs to distinguish chance from a difference."""


@dataclass(frozen=True)
class DiffOptions:
    """How to compare.

    Attributes:
        findings: the directory for case files of differences.
        keep_going: whether to continue after the first difference.
        tries: the maximum number of runs to distinguish chance from a difference.
        options: the command's options that select both sides.
    """

    findings: Path
    keep_going: bool = False
    tries: int = TRIES
    options: tuple[str, ...] = ()
