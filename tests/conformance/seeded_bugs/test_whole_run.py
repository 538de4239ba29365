"""Bugs that live for the whole run, harness included, are caught by the invariants alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.pods import numbered
from numaproof.conformance.judging import pods
from numaproof.conformance.judging.pods import PodResources
from numaproof.conformance.seeded_bugs import invariant_hunt
from numaproof.conformance.seeded_bugs.catalogue import WHOLE_RUN
from numaproof.conformance.seeded_bugs.fuzz_hunt import seeds_from
from numaproof.conformance.seeded_bugs.seeding import Bug
from numaproof.reference.pods.manifest import read_pod

if TYPE_CHECKING:
    from pathlib import Path

SCENARIOS = 400
"""Scenarios that are played for a bug at the most."""

COUNTS = {"exclusive-count", "memory-of-guaranteed-only"}
ALIGNMENT = {
    "cpus-within-affinity",
    "memory-within-affinity",
    "devices-near-affinity",
    "preferred-affinity-is-narrowest",
}

QUICK = {
    "parts-of-cpus-are-rounded-up-to-exclusive-ones",
    "burstable-pods-are-guaranteed",
    "init-containers-do-not-count-for-the-effective-request",
}
"""One of each kind, which a few scenarios show."""


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.id, marks=() if bug.id in QUICK else pytest.mark.slow)
        for bug in WHOLE_RUN
    ],
)
def test_invariants_alone_catch_a_bug_that_is_everywhere(bug: Bug, tmp_path: Path) -> None:
    caught = invariant_hunt.hunt(bug, seeds_from(0, SCENARIOS), tmp_path)
    assert caught is not None
    # It is caught for what it does, and not for what it does to the harness.
    assert caught.invariant in (ALIGNMENT if "effective" in bug.id else COUNTS), caught.message


@pytest.mark.slow
def test_a_healthy_run_breaks_no_invariant(tmp_path: Path) -> None:
    healthy = Bug("none", "readings", (), lambda _: None)
    assert invariant_hunt.hunt(healthy, seeds_from(0, SCENARIOS), tmp_path) is None


def test_the_invariants_read_a_pod_rightly_while_the_reference_does_not() -> None:
    manifest = numbered("a", [{"limits": {"cpu": "2"}}])
    bug = next(one for one in WHOLE_RUN if one.id == "burstable-pods-are-guaranteed")
    with bug.seeded():
        assert read_pod(manifest).qos == "Guaranteed"
        assert pods.read(manifest, PodResources()).qos == "Burstable"
    assert read_pod(manifest).qos == "Burstable"
