"""Decides which failures are explained by a named defect of the kubelet.

The reference's deviations list where a release contradicts its documentation. For the kubelet of
that release, and for the reference, such a failure is expected, and its absence is reported. For
other implementations, it is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from numaproof.conformance.judging import signatures
from numaproof.conformance.judging.entitlement import options, switched_on, topology_policy
from numaproof.protocol import messages
from numaproof.reference.deviations import (
    assignment,
    devices,
    distribution,
    memory,
    node,
    topology,
)
from numaproof.reference.deviations.defects import DEFECTS
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.judging.invariants.view import BrokenInvariant, Violation
    from numaproof.protocol.events import Outcome
    from numaproof.protocol.machine import MachineInfo


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
        # The file still has the group after the pod that created it is gone.
        "memory-file-counts-blocks",
    }
)

_TAKEN_ANEW = frozenset(
    {
        "exclusive-set-of-budget-stays",
        "memory-of-budget-stays",
        "memory-file-counts-blocks-of-budgets",
        "no-cpu-lost-by-budgets",
        # The CPUs that a pod has may not be enough to take them anew.
        "restart-admits-again",
    }
)

_WRAPPED = 1 << 63
"""More bytes than any machine has. A negative number read as unsigned is larger."""

_EXPLAINS: dict[str, Collection[str]] = {
    "free-core-by-average": _BROKEN_CORES | {"refusal-leaves-nothing"},
    "single-node-taken-out-of-group": {
        "memory-node-alone-or-in-group",
        # If the pod is rejected after it got the single node, only the file shows it.
        "refusal-keeps-groups",
        "memory-file-counts-blocks",
    },
    "affinity-breaks-group": _BROKEN_GROUPS,
    "reusable-memory-outlives-pod": {"memory-file-reserves-for-returned-pods"},
    "uncore-across-nodes-counted-twice": _TOO_FEW,
    # An init container that has ended takes over an earlier one's memory a second time.
    "ended-init-served-again": {"memory-reused-again-stays"},
    "reservation-beyond-node-wraps": {"memory-allocatable-but-reserved"},
    "full-pcpus-only-splits-cores-at-affinity": {"whole-cores-at-full-affinity"},
    "init-devices-reused-without-node": {"reused-devices-near-affinity"},
    "pod-level-cpus-taken-anew": _TAKEN_ANEW,
    "quota-limits-exclusive-cpus": {"exclusive-cpus-without-quota"},
    "cpu-metrics-drift": {"gauge-of-exclusive-cpus", "gauge-of-shared-pool", "gauges-of-nodes"},
    "pod-level-without-devices": {"devices-of-pod-level-pods"},
    "full-pcpus-only-refuses-own-pod": {"restart-admits-again"},
}
"""The invariants that each defect breaks."""

_ONLY_IF: dict[str, Callable[[Violation, Facts], bool]] = {
    # A rejected pod may have released other pods' CPUs. Then the pool has grown and lost nothing.
    "free-core-by-average": lambda violation, facts: (
        not _even(facts)
        and not (violation.invariant == "refusal-leaves-nothing" and violation.cpus)
    ),
    "single-node-taken-out-of-group": lambda violation, facts: (
        violation.invariant != "memory-file-counts-blocks" or _has_empty_node(facts)
    ),
    "uncore-across-nodes-counted-twice": lambda _, facts: _caches_across_nodes(facts),
    "reservation-beyond-node-wraps": lambda violation, _: violation.size >= _WRAPPED,
}
"""For each defect, additional conditions under which it explains a broken invariant."""


_MEMORY = ("memory-",)
_SPOILS: Mapping[str, tuple[str, ...]] = {
    "affinity-breaks-group": _MEMORY,
    "cpu-metrics-drift": ("gauge",),
    # After a pod is removed, the affinity has free CPUs again, but its cores remain split.
    "full-pcpus-only-splits-cores-at-affinity": ("whole-cores-",),
    "pod-level-cpus-taken-anew": _MEMORY,
    # A pod that was refused before is admitted with the memory that it seems to have.
    "reusable-memory-outlives-pod": (*_MEMORY, "same-state-same-outcome"),
    "single-node-taken-out-of-group": _MEMORY,
    "reservation-beyond-node-wraps": _MEMORY,
}
"""For each defect, the prefixes of the invariants that may break as a consequence of it."""


_BY_NAME = {defect.name: defect for defect in DEFECTS}


def _has_empty_node(facts: Facts) -> bool:
    """Whether a group can include a node without memory, so that only the file shows the group."""
    return any(not node.memory for node in facts.machine.topology or ())


def _caches_across_nodes(facts: Facts) -> bool:
    """Whether an uncore cache spans several nodes."""
    nodes = facts.nodes.values()
    caches = facts.uncore_caches.values()
    return any(sum(bool(cpus & node) for node in nodes) > 1 for cpus in caches)


def _even(facts: Facts) -> bool:
    """Whether averages over cores, sockets or caches are exact.

    The machine's own count of sockets may differ from the number of sockets that it lists.
    """
    caches = {len(cpus) for cpus in facts.uncore_caches.values()}
    counted = facts.machine.num_sockets in (0, len(facts.sockets))
    return bool(facts.properties["uniform"]) and len(caches) <= 1 and counted


def judge(
    outcome: Outcome,
    case: Case,
    violations: Iterable[BrokenInvariant],
    release_defects: frozenset[str],
    *,
    differs: bool = False,
) -> tuple[Outcome, str | None]:
    """The outcome of a case after accounting for known defects, and the defect's name.

    Args:
        outcome: the outcome of the run, regardless of known defects.
        case: the case, which may name the defect that it shows.
        violations: the broken invariants, in the order of calls.
        release_defects: the defects of the implementation's release; see `known_defects`.
        differs: whether an answer differs from the reference's, which has the same defects. No
            defect explains that.
    """
    if outcome == "fail" and differs:
        return outcome, None
    shown = case.defect if case.defect in release_defects else None
    names = [shown] if shown else []
    if outcome == "fail":
        for violation, facts, _ in _causes_first(violations, release_defects):
            name = explain(violation, facts, release_defects, names)
            if name is None:
                return outcome, None
            names.append(name)
    if shown:
        return _with_defect(outcome, shown)
    return ("expected failure", names[0]) if names else (outcome, None)


def _causes_first(
    violations: Iterable[BrokenInvariant], release_defects: frozenset[str]
) -> list[BrokenInvariant]:
    """The broken invariants; for each call, those that a defect explains come before others."""

    def place(broken_invariant: BrokenInvariant) -> tuple[int, bool]:
        violation, facts, call = broken_invariant
        return call, explain(violation, facts, release_defects) is None

    return sorted(violations, key=place)


def _consequence_of(violation: Violation, earlier_defects: Sequence[str]) -> str | None:
    """The earlier defect of which a broken invariant is a consequence."""
    return next(
        (
            name
            for name in earlier_defects
            if name in _SPOILS and violation.invariant.startswith(_SPOILS[name])
        ),
        None,
    )


def _with_defect(outcome: Outcome, defect: str) -> tuple[Outcome, str | None]:
    if outcome in ("unsupported", "protocol error"):
        return outcome, None
    if _BY_NAME[defect].answers:
        if outcome == "pass":
            return "missing expected failure", defect
        return ("expected failure", defect) if outcome == "fail" else (outcome, None)
    # The kubelet panics or hangs; the reference follows the documentation and passes.
    return (outcome, None) if outcome in ("pass", "fail") else ("expected failure", defect)


def explain(
    violation: Violation,
    facts: Facts,
    release_defects: frozenset[str],
    earlier_defects: Sequence[str] = (),
) -> str | None:
    """The known defect that explains a broken invariant, or None.

    `earlier_defects` explained previous violations; their consequences are attributed to them.
    """
    return next(
        (
            name
            for name in sorted(release_defects & _EXPLAINS.keys())
            if violation.invariant in _EXPLAINS[name]
            and (name not in _ONLY_IF or _ONLY_IF[name](violation, facts))
        ),
        _consequence_of(violation, earlier_defects),
    )


def known_defects(kubernetes: str) -> frozenset[str]:
    """The defects of a release.

    Raises:
        UnknownReleaseError: the release is unknown.
    """
    release(kubernetes)
    return frozenset(one.name for one in DEFECTS if kubernetes in one.releases)


_NIL = "nil pointer dereference"

_PANICS: dict[str, tuple[str, tuple[str, ...]]] = {
    node.GATES_PANIC.name: ("feature", ("v1beta1.SetDefaults_KubeletConfiguration",)),
    topology.NODE_ID_PANIC.name: ("bitmask.BitMask is nil", ("bitmask.And",)),
    topology.CLOSEST_PANIC.name: (
        "index out of range",
        ("topologymanager.NUMADistances.CalculateAverageFor",),
    ),
    memory.NULL_STATE_PANIC.name: (_NIL, ("memorymanager.areMachineStatesEqual",)),
    assignment.DIVISION_PANIC.name: (
        "integer divide by zero",
        (
            "cpumanager.(*staticPolicy).Allocate",
            "cpumanager.(*staticPolicy).enforceSMTAlignment",
        ),
    ),
    devices.VANISHED_DEVICE_PANIC.name: (
        _NIL,
        ("devicemanager.(*ManagerImpl).generateDeviceTopologyHints.func1",),
    ),
    memory.MISSING_PAGES_PANIC.name: (
        _NIL,
        ("memorymanager.(*staticPolicy).calculateHints.func1",),
    ),
    memory.MEMORYLESS_PANIC.name: (_NIL, ("memorymanager.isAffinitySatisfyRequest",)),
}
"""For each defect, part of the panic's message, and the functions that panic."""

_TOO_MANY = 10**7
"""More combinations of hints than a kubelet can enumerate within seconds."""

_WIDE = 16
"""Too many nodes for a kubelet to enumerate their sets within seconds."""

_OVERWRITTEN = 4
"""The size of the smallest combination that can be overwritten on a machine with more nodes."""


@dataclass(frozen=True)
class BrokenCall:
    """A call without a result: the request and the node that it was sent to."""

    operation: str
    args: messages.Args
    config: messages.KubeletConfiguration
    machine: MachineInfo


def defect_of_panic(fault: messages.Fault, release_defects: frozenset[str]) -> str | None:
    """The known defect that caused a fault, or None.

    A panic is identified by its message and by the function that panicked, according to the trace.
    """
    function = signatures.go_function(fault.trace)
    return next(
        (
            name
            for name in sorted(release_defects & _PANICS.keys())
            if _PANICS[name][0] in fault.message and function in _PANICS[name][1]
        ),
        None,
    )


def defect_of_hang(call: BrokenCall, release_defects: frozenset[str]) -> str | None:
    """The known defect that makes a call hang, or None.

    A hang leaves no trace, so it is attributed to a defect if the request meets all of the defect's
    conditions.
    """
    return next(
        (name for name in sorted(release_defects & _NEVER_ENDS.keys()) if _NEVER_ENDS[name](call)),
        None,
    )


def _loops_over_whole_cores(call: BrokenCall) -> bool:
    """Whether CPUs are distributed across nodes in whole cores."""
    return _options(call) >= {"distribute-cpus-across-numa", "full-pcpus-only"}


def _overwrites_nodes(call: BrokenCall) -> bool:
    """Whether CPUs are distributed across enough nodes for a combination to be overwritten."""
    nodes = len(call.machine.topology or ())
    return "distribute-cpus-across-numa" in _options(call) and nodes > _OVERWRITTEN


def _options(call: BrokenCall) -> frozenset[str]:
    """The enabled CPU Manager options, if the call assigns CPUs."""
    if isinstance(call.args, messages.AssignArgs):
        return switched_on(call.args.options)
    return options(call.config) if call.operation == "admit" else frozenset()


def _walks_all_combinations(call: BrokenCall) -> bool:
    """Whether the providers' hints have too many combinations."""
    if isinstance(call.args, messages.MergeArgs):
        lists = (
            hints or () for provider in call.args.providers for hints in (provider or {}).values()
        )
        return prod(len(hints) for hints in lists if hints) > _TOO_MANY
    sets = 2 ** len(call.machine.topology or ()) - 1
    return _is_aligned(call) and sets ** len(set(_resources(call.args))) > _TOO_MANY


def _walks_all_nodes(call: BrokenCall) -> bool:
    """Whether a pod requests devices on a machine with too many sets of nodes."""
    devices = any("/" in resource for resource in _resources(call.args))
    return devices and _is_aligned(call) and len(call.machine.topology or ()) > _WIDE


_NEVER_ENDS: dict[str, Callable[[BrokenCall], bool]] = {
    distribution.ENDLESS_LOOP.name: _loops_over_whole_cores,
    distribution.OVERWRITTEN_LOOP.name: _overwrites_nodes,
    topology.ALL_COMBINATIONS.name: _walks_all_combinations,
    devices.ALL_NODES_FOR_DEVICES.name: _walks_all_nodes,
}
"""For each defect, whether a call meets all conditions for the hang."""


def _is_aligned(call: BrokenCall) -> bool:
    return call.operation == "hints" or topology_policy(call.config) != "none"


def _resources(args: messages.Args) -> Iterator[str]:
    """The resources named by a pod's containers, with repetitions."""
    if isinstance(args, messages.AdmitArgs | messages.HintsArgs):
        spec = args.pod["spec"]
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            resources = container.get("resources") or {}
            yield from {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
