"""CFS quota, where answers tell of it: whom it limits, and whom it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.judging.entitlement import quota_limits, quota_spares_exclusive
from numaproof.conformance.judging.invariants.view import Violation, named
from numaproof.inputs.plurals import numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.judging.invariants.view import View


def on_state(view: View) -> Iterator[Violation]:
    """What must hold of the quota of every container that is told of.

    A pod that has CPUs as a whole is left out: it shares them out as it likes.
    """
    enforced = quota_limits(view.config)
    spares = quota_spares_exclusive(view.config, view.kubernetes)
    for (uid, name), container in view.containers():
        pod = view.parsed[uid]
        if container.quota is None or uid in view.reclassified or pod.budget is not None:
            continue
        reading = next(one for one in pod.containers if one.name == name)
        limited = reading.limits.get("cpu") or pod.limits.get("cpu")
        if container.exclusive and spares:
            if container.quota:
                yield Violation(
                    "exclusive-cpus-without-quota",
                    "CPU-STATIC-020",
                    f"{named((uid, name))} has a CFS quota on its exclusive"
                    f" {numbered('CPU', container.exclusive)}",
                    places=((uid, name),),
                )
        elif container.quota is not bool(enforced and limited):
            yield Violation(
                "quota-enforces-limits",
                "CPU-NONE-003",
                f"{named((uid, name))} has {'a' if container.quota else 'no'} CFS quota, and"
                f" {'a' if limited else 'no'} CPU limit",
                places=((uid, name),),
            )
