"""The two forms of a machine's tree.

A program finds the tree in a directory. What runs in this process is given one that pyfakefs holds:
nothing is written, and only the files are made that somebody reads. Each form is made on first use
and kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from numaproof import fakesys
from numaproof.folders import trees

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class MachineTree(Protocol):
    """The tree of a machine, of which an implementation is told where it finds it."""

    def directory(self) -> Path:
        """The directory that holds ``sys/`` and ``proc/``."""

    def held(self) -> str:
        """The path at which an implementation in this process finds them."""


@dataclass(frozen=True)
class HeldTree:
    """A tree that pyfakefs holds once somebody reads it."""

    tree: fakesys.Tree

    @cached_property
    def root(self) -> fakesys.TreePath:
        """The root of the fake file system."""
        return fakesys.TreePath.root(self.tree)

    @cached_property
    def path(self) -> str:
        """The path at which an implementation in this process finds it, as long as this is kept."""
        return trees.hold(self.root)


@dataclass(frozen=True)
class MadeTree:
    """A tree that is made up.

    Attributes:
        make: makes it.
        target: the directory that it is written to, which must be empty or missing.
    """

    make: Callable[[], HeldTree]
    target: Path

    @cached_property
    def made(self) -> HeldTree:
        """The tree."""
        return self.make()

    @cached_property
    def _written(self) -> Path:
        fakesys.write_directory(self.made.tree, self.target)
        return self.target

    def directory(self) -> Path:
        """The directory, which is written now if it was not yet."""
        return self._written

    def held(self) -> str:
        """The path at which this process finds the tree, as long as this is kept."""
        return self.made.path


@dataclass(frozen=True)
class FoundTree:
    """A tree that somebody has left in a directory."""

    path: Path

    def directory(self) -> Path:
        """That directory."""
        return self.path

    def held(self) -> str:
        """The same."""
        return str(self.path)
