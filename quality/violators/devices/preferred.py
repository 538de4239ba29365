"""Violators of the devices that a plugin prefers."""

from __future__ import annotations

from typing import Any

from numaproof.reference.devices import policy
from numaproof.reference.topology.hints import ANYWHERE
from quality.seeding import Changes, SubjectBugs

seeds = SubjectBugs("devices-preferred")


@seeds("DEV-ALLOCATE-008")
def plugins_are_not_asked_what_they_prefer(changes: Changes) -> None:
    """A plausible author takes any device that would do."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, near: Any) -> Any:
        return original(state, request._replace(preferred=()), available, near)

    changes.around(policy, "by_affinity", by_affinity)


@seeds("DEV-ALLOCATE-008")
def preferred_devices_are_in_no_order(changes: Changes) -> None:
    """A plausible author takes the preferred devices for a set."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, near: Any) -> Any:
        preferred = tuple(sorted(request.preferred))
        return original(state, request._replace(preferred=preferred), available, near)

    changes.around(policy, "by_affinity", by_affinity)


@seeds("DEV-ALLOCATE-008")
def plugins_are_asked_for_single_devices_alone(changes: Changes) -> None:
    """A plausible author asks what to prefer where one device is wanted."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, near: Any) -> Any:
        if request.amount > 1:
            request = request._replace(preferred=())
        return original(state, request, available, near)

    changes.around(policy, "by_affinity", by_affinity)


@seeds("DEV-ALLOCATE-008")
def plugins_are_asked_only_where_nothing_is_aligned(changes: Changes) -> None:
    """A plausible author thinks that an affinity leaves nothing to choose."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, near: Any) -> Any:
        if near != ANYWHERE:
            request = request._replace(preferred=())
        return original(state, request, available, near)

    changes.around(policy, "by_affinity", by_affinity)


@seeds("DEV-ALLOCATE-008")
def preferred_devices_come_before_near_ones(changes: Changes) -> None:
    """A plausible author lets the plugin have the last word."""

    def by_affinity(original: Any, state: Any, request: Any, available: Any, near: Any) -> Any:
        ordered = original(state, request, available, near)
        return sorted(ordered, key=request.preference)

    changes.around(policy, "by_affinity", by_affinity)
