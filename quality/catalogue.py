"""All seeded bugs, subject by subject, and all violators."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from quality import violators
from quality.bugs import (
    configuration,
    cpus,
    devices,
    discovery,
    memory,
    merging,
    pod_level,
    policy_none,
    readings,
    refusals,
    restart,
    topology,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quality.seeding import Bug, SubjectBugs

BUGS = tuple(
    bug
    for subject in (
        discovery,
        configuration,
        refusals,
        policy_none,
        cpus,
        memory,
        devices,
        topology,
        merging,
        restart,
        pod_level,
    )
    for bug in subject.seeds.bugs
)
"""Every bug once; their ids never change."""

WHOLE_RUN = readings.seeds.bugs
"""Bugs that live for a whole run, the harness included, for the invariants alone to catch."""


def _violators() -> Iterator[Bug]:
    """The violators of every module, in the order of folders and files."""
    for module in pkgutil.walk_packages(violators.__path__, f"{violators.__name__}."):
        if not module.ispkg:
            seeds: SubjectBugs = importlib.import_module(module.name).seeds
            yield from seeds.bugs


VIOLATORS = tuple(_violators())
"""Bugs that each break one requirement; their ids never change."""
