"""All seeded bugs, subject by subject."""

from __future__ import annotations

from numaproof.conformance.gauntlet import (
    configuration,
    cpus,
    devices,
    discovery,
    memory,
    restart,
    topology,
)

BUGS = tuple(
    bug
    for subject in (discovery, configuration, cpus, memory, devices, topology, restart)
    for bug in subject.seeds.bugs
)
"""Every bug once; their ids never change."""
