"""All seeded bugs, subject by subject."""

from __future__ import annotations

from numaproof.conformance.seeded_bugs.bugs import (
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
