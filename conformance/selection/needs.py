"""What the bundled cases need an implementation to claim, determined by playing them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.claims import names
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Scenario, claims_needed, reference_target
from numaproof.conformance.judging.baselines import KUBELET
from numaproof.protocol.features import FEATURES, Support
from numaproof.protocol.releases import RELEASES
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case


class FeatureRow(NamedTuple):
    """A row of `numaproof features`; `cases` is the number of cases that need the feature."""

    name: str
    support: Support
    meaning: str
    claimed_by: str
    operations: tuple[str, ...]
    cases: int


def rows() -> tuple[FeatureRow, ...]:
    """All features, those claimed by name first. Counting their cases takes several seconds."""
    found = Counter(name for case in loading.bundled_cases() for name in features_of(case.id))
    return tuple(
        FeatureRow(
            one.name,
            one.support,
            one.meaning,
            names.how_claimed(one),
            one.operations,
            found[one.name],
        )
        for one in FEATURES.values()
    )


def features_of(case: str) -> tuple[str, ...]:
    """The features that a bundled case needs; empty if there is no such case."""
    return names.needed_features(of_case(case) or ())


@cache
def of_case(name: str) -> tuple[str, ...] | None:
    """The claims that a bundled case needs; None if there is no such case.

    Plays the case on the reference, on the first machine and in the newest release that it applies
    to.
    """
    case = loading.bundled_by_id().get(name)
    selected = _first(case) if case else None
    if selected is None:
        return None
    one, release = selected
    with scratch_folder() as scratch:
        scenario = Scenario(one.case, one.info, one.machine.tree)
        return claims_needed(scenario, release, scratch)


@cache
def _machines() -> tuple[ProfileMachine, ...]:
    # The reference reads trees in memory, so nothing is written to this folder.
    profiles = map(fakesys.load_profile, fakesys.bundled_profiles())
    return tuple(ProfileMachine(one, Path(one.name)) for one in profiles)


def _first(case: Case) -> tuple[runner.SelectedCase, str] | None:
    for release in reversed(RELEASES):
        target = reference_target(release, KUBELET)
        for machine in _machines():
            if found := runner.select([case], [machine], target):
                return found[0], release
    return None
