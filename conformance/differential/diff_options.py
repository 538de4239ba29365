"""How `numaproof diff` compares, and the kinds of scenarios that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LIFE = "life"
"""What is made of a seed in one release: a node's life."""

START = "start"
"""Likewise: one start with something odd in it."""

FILE = "file"
"""Likewise: a start that finds a checkpoint whose parts are damaged or at odds."""

TREE = "tree"
"""What is made of a seed beside any node: the tree of a machine, often odd, to be discovered."""

UPGRADE = "upgrade"
"""What is made of a seed in two releases: a node that is upgraded or downgraded."""

TRIES = 24
"""Runs of a scenario at most, to tell chance from a difference."""


@dataclass(frozen=True)
class DiffOptions:
    """How to compare.

    Attributes:
        findings: the directory in which the case files of differences are written.
        keep_going: whether to go on after the first difference.
        tries: runs of a scenario, to tell chance from a difference.
        options: of the command, that name both sides again.
    """

    findings: Path
    keep_going: bool = False
    tries: int = TRIES
    options: tuple[str, ...] = ()
