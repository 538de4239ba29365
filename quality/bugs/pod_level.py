"""Bugs in what follows from pod-level resources, and for them, when pods are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.deviations.pods import ClassBySums, DefaultsBesideLimits
from numaproof.reference.pods.containers import PodContainer
from numaproof.reference.pods.pod_level import PodRules
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Mapping

seeds = SubjectBugs("pod-level")


@seeds("CPU-STATIC-026")
def containers_make_up_for_one_another(changes: Changes) -> None:
    changes.replace(PodRules, "qos_class", staticmethod(ClassBySums.qos_class))


@seeds("PR #137150", "NODE-PODLEVEL-016")
def empty_pod_level_resources_decide_the_class(changes: Changes) -> None:
    changes.replace(PodRules, "decide", staticmethod(lambda pod: True))


@seeds("NODE-PODLEVEL-017")
def pod_level_requests_are_missing_without_limits(changes: Changes) -> None:
    changes.replace(PodRules, "as_one", staticmethod(DefaultsBesideLimits.as_one))


@seeds("NODE-PODLEVEL-018")
def pod_level_limits_are_not_filled_in(changes: Changes) -> None:
    as_one = PodRules.as_one

    def given(requests: Mapping[str, Any], limits: Mapping[str, Any], members: Any) -> PodContainer:
        return PodContainer("", as_one(requests, limits, members).requests, limits)

    changes.replace(PodRules, "as_one", staticmethod(given))
