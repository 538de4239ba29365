"""Decides which failures a named defect of the kubelet explains, and for whom.

The reference's deviations list where a release contradicts its documents. For that kubelet, and for
the reference, such a failure is expected, and its absence is reported; for anyone else it is a
failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.deviations.defects import DEFECTS
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.judging.invariants import Violation
    from numaproof.protocol.events import Outcome

_BROKEN_CORES = frozenset(
    {
        "assigned-out-of-available",
        "shared-or-exclusive",
        "exclusive-to-one",
        "reserved-never-exclusive",
        "exclusive-count",
        "whole-cores-only",
        "whole-cores-at-full-affinity",
        "reserved-stay-shared",
        "strict-reservation",
        "exclusive-set-stays",
        "runs-on-its-own-or-shared",
        "cpus-within-affinity",
    }
)

_TOO_FEW = frozenset(
    {"assigned-count", "exclusive-count", "whole-cores-only", "whole-cores-at-full-affinity"}
)

_BROKEN_GROUPS = frozenset(
    {
        "memory-node-alone-or-in-group",
        "memory-node-in-use-joins-no-group",
        "memory-groups-disjoint",
        # Once the pod that made the group is gone, the file alone still has it.
        "memory-file-counts-blocks",
    }
)

_TAKEN_ANEW = frozenset(
    {
        "exclusive-set-of-budget-stays",
        "memory-of-budget-stays",
        "memory-file-counts-blocks-of-budgets",
        "no-cpu-lost-by-budgets",
    }
)

_WRAPPED = 1 << 63
"""No machine has as many bytes; a negative number read as unsigned is more."""

_EXPLAINS: dict[str, Callable[[Violation, Facts], bool]] = {
    "free-core-by-average": lambda violation, facts: (
        (violation.invariant in _BROKEN_CORES or _given_back_twice(violation)) and not _even(facts)
    ),
    "single-node-taken-out-of-group": lambda violation, facts: (
        # Where the pod is refused after it was given the single node, the file alone shows it.
        violation.invariant in ("memory-node-alone-or-in-group", "refusal-keeps-groups")
        or (violation.invariant == "memory-file-counts-blocks" and _has_empty_node(facts))
    ),
    "affinity-breaks-group": lambda violation, _: violation.invariant in _BROKEN_GROUPS,
    "reusable-memory-outlives-pod": lambda violation, _: (
        violation.invariant == "memory-file-reserves-for-returned-pods"
    ),
    "uncore-across-nodes-counted-twice": lambda violation, facts: (
        violation.invariant in _TOO_FEW and _caches_across_nodes(facts)
    ),
    # An init container that has ended takes over what an earlier one has, once more.
    "ended-init-served-again": lambda violation, _: (
        violation.invariant == "memory-reused-again-stays"
    ),
    "reservation-beyond-node-wraps": lambda violation, _: (
        violation.invariant == "memory-allocatable-but-reserved" and violation.size >= _WRAPPED
    ),
    "full-pcpus-only-splits-cores-at-affinity": lambda violation, _: (
        violation.invariant == "whole-cores-at-full-affinity"
    ),
    "init-devices-reused-without-node": lambda violation, _: (
        violation.invariant == "reused-devices-near-affinity"
    ),
    "pod-level-cpus-taken-anew": lambda violation, _: violation.invariant in _TAKEN_ANEW,
    "quota-limits-exclusive-cpus": lambda violation, _: (
        violation.invariant == "exclusive-cpus-without-quota"
    ),
    "pod-level-without-devices": lambda violation, _: (
        violation.invariant == "devices-of-pod-level-pods"
    ),
}
"""By defect: whether it explains a broken invariant on a machine."""

_MEMORY = "memory-"
_SPOILS = {
    "affinity-breaks-group": _MEMORY,
    # A pod that leaves gives the affinity free CPUs again; what was split stays so.
    "full-pcpus-only-splits-cores-at-affinity": "whole-cores-",
    "pod-level-cpus-taken-anew": _MEMORY,
    "reusable-memory-outlives-pod": _MEMORY,
    "single-node-taken-out-of-group": _MEMORY,
    "reservation-beyond-node-wraps": _MEMORY,
}
"""By defect: how the names begin of the invariants that may break, for it, once it was met."""


_BY_NAME = {defect.name: defect for defect in DEFECTS}


def _given_back_twice(violation: Violation) -> bool:
    """Whether a refused pod gave back CPUs of others: the pool grew, and lost nothing."""
    return violation.invariant == "refusal-leaves-nothing" and not violation.cpus


def _has_empty_node(facts: Facts) -> bool:
    """Whether a group may have a node that nothing lies on, so that only the file tells of it."""
    return any(not node.memory for node in facts.machine.topology or ())


def _caches_across_nodes(facts: Facts) -> bool:
    """Whether an uncore cache lies in more than one node."""
    nodes = facts.nodes.values()
    caches = facts.uncore_caches.values()
    return any(sum(bool(cpus & node) for node in nodes) > 1 for cpus in caches)


def _even(facts: Facts) -> bool:
    """Whether an average over cores, sockets or caches says what each of them has.

    What a machine counts may be another number than that of what it lists.
    """
    caches = {len(cpus) for cpus in facts.uncore_caches.values()}
    counted = facts.machine.num_sockets in (0, len(facts.sockets))
    return bool(facts.properties["uniform"]) and len(caches) <= 1 and counted


def judge(
    outcome: Outcome,
    case: Case,
    broken: Sequence[tuple[Violation, Facts]],
    known: frozenset[str],
) -> tuple[Outcome, str | None]:
    """The outcome of a case with the known defects taken into account, and the defect's name.

    Args:
        outcome: how the case ended by itself.
        case: the case, which may name the defect that it shows.
        broken: the invariants that were broken, each with the machine as it was then.
        known: the defects that the implementation has by its release; see `known_defects`.
    """
    if case.defect in known:
        return _with_defect(outcome, case.defect)
    if outcome == "fail" and broken:
        names: list[str] = []
        for violation, facts in broken:
            name = explain(violation, facts, known, names)
            if name is None:
                return outcome, None
            names.append(name)
        return "expected failure", names[0]
    return outcome, None


def _spoilt(violation: Violation, met: Sequence[str]) -> str | None:
    """The defect met before that explains a broken invariant as what followed from it."""
    return next(
        (name for name in met if name in _SPOILS and violation.invariant.startswith(_SPOILS[name])),
        None,
    )


def _with_defect(outcome: Outcome, defect: str) -> tuple[Outcome, str | None]:
    if outcome in ("unsupported", "protocol error"):
        return outcome, None
    if _BY_NAME[defect].answers:
        if outcome == "pass":
            return "missing expected failure", defect
        return ("expected failure", defect) if outcome == "fail" else (outcome, None)
    # The kubelet panics or never answers; the reference keeps to the document and passes.
    return (outcome, None) if outcome in ("pass", "fail") else ("expected failure", defect)


def explain(
    violation: Violation, facts: Facts, known: frozenset[str], met: Sequence[str] = ()
) -> str | None:
    """The known defect that a broken invariant is due to, or None.

    `met` are those that explained others before; what they spoilt is due to them, too.
    """
    return next(
        (name for name in sorted(known & _EXPLAINS.keys()) if _EXPLAINS[name](violation, facts)),
        _spoilt(violation, met),
    )


def known_defects(kubernetes: str) -> frozenset[str]:
    """The defects of the kubelets of a release.

    Raises:
        UnknownReleaseError: there is no such release.
    """
    release(kubernetes)
    return frozenset(one.name for one in DEFECTS if kubernetes in one.releases)
