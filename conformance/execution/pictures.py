"""The machine before and after the call that failed, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases import manifests
from numaproof.protocol.events import Owner, Picture

if TYPE_CHECKING:
    from numaproof.conformance.judging.invariant_checker import InvariantChecker
    from numaproof.conformance.judging.invariants import View


def pictures(checker: InvariantChecker) -> tuple[Picture, ...]:
    """Up to two pictures, before and after the last call whose states are known."""
    views = (("before", checker.before), ("after", checker.now))
    return tuple(picture(title, view) for title, view in views if view is not None)


def picture(title: str, view: View) -> Picture:
    """Which container owns which CPUs in a view."""
    owners = [
        Owner(f"{manifests.pod_name(uid)}/{name}", str(cpus))
        for (uid, name), cpus in sorted(view.exclusive().items())
    ]
    reserved = view.reserved()
    if reserved:
        owners.append(Owner("reserved", str(reserved)))
    return Picture(title, tuple(owners), str(view.state.shared))
