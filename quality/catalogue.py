"""All seeded bugs and requirement mutants, module by module."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from quality import bugs, requirement_mutants
from quality.bugs import readings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from quality.seeding import Bug, SubjectBugs


def _of(package: ModuleType) -> Iterator[Bug]:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        seeds: SubjectBugs = importlib.import_module(module.name).seeds
        yield from seeds.bugs


WHOLE_RUN = readings.seeds.bugs
"""Bugs that are active for a whole run, including the harness. Only invariants can catch them."""

BUGS = tuple(bug for bug in _of(bugs) if bug not in WHOLE_RUN)
"""All other seeded bugs. Their ids never change."""

REQUIREMENT_MUTANTS = tuple(_of(requirement_mutants))
"""Bugs that each break one requirement. Their ids never change."""
