"""All violators, found in the modules below the folder of violators."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from numaproof.conformance.seeded_bugs import violators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.seeded_bugs.seeding import Bug, SubjectBugs


def _violators() -> Iterator[Bug]:
    """The violators of every module, in the order of folders and files."""
    for module in pkgutil.walk_packages(violators.__path__, f"{violators.__name__}."):
        if not module.ispkg:
            seeds: SubjectBugs = importlib.import_module(module.name).seeds
            yield from seeds.bugs


VIOLATORS = tuple(_violators())
"""Bugs that each break one requirement; their ids never change."""
