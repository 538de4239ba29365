"""Attributes a panic or a hang of a kubelet to a named defect.

A panic is recognized by its message and by the function in which it happened, which the trace of a
fault names. A hang leaves no trace: it is recognized by a request that meets all conditions of the
defect.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from numaproof.conformance.judging import traces
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.protocol.machine import MachineInfo

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
"""By defect: words of the panic's message, and the functions in which it happens."""

_TOO_MANY = 10**7
"""Combinations that a kubelet needs more than seconds to walk."""

_WIDE = 16
"""Nodes whose sets a kubelet needs more than seconds to walk."""

_OVERWRITTEN = 4
"""The smallest combination of nodes that can be overwritten, where the machine has more."""


@dataclass(frozen=True)
class BrokenCall:
    """A call that got no result: the request and the node it went to."""

    operation: str
    args: messages.Args
    config: messages.KubeletConfiguration
    machine: MachineInfo


def panicked(fault: messages.Fault, known: frozenset[str]) -> str | None:
    """The known defect that caused a fault, or None."""
    function = traces.go_function(fault.trace)
    return next(
        (
            name
            for name in sorted(known & _PANICS.keys())
            if _PANICS[name][0] in fault.message and function in _PANICS[name][1]
        ),
        None,
    )


def never_answered(asked: BrokenCall, known: frozenset[str]) -> str | None:
    """The known defect that keeps a call from ending, or None."""
    return next(
        (name for name in sorted(known & _NEVER_ENDS.keys()) if _NEVER_ENDS[name](asked)), None
    )


def _loops_over_whole_cores(asked: BrokenCall) -> bool:
    """Whether CPUs are taken in whole cores and shared among nodes."""
    return _options(asked) >= {"distribute-cpus-across-numa", "full-pcpus-only"}


def _overwrites_nodes(asked: BrokenCall) -> bool:
    """Whether CPUs are shared among enough nodes that a combination of them can be overwritten."""
    nodes = len(asked.machine.topology or ())
    return "distribute-cpus-across-numa" in _options(asked) and nodes > _OVERWRITTEN


def _options(asked: BrokenCall) -> frozenset[str]:
    """The CPU Manager's options that are on, in a call that takes CPUs."""
    if isinstance(asked.args, messages.AssignArgs):
        return switched_on(asked.args.options)
    return options(asked.config) if asked.operation == "admit" else frozenset()


def _walks_all_combinations(asked: BrokenCall) -> bool:
    """Whether there are too many combinations of the providers' hints."""
    if isinstance(asked.args, messages.MergeArgs):
        lists = (
            hints or () for provider in asked.args.providers for hints in (provider or {}).values()
        )
        return prod(len(hints) for hints in lists if hints) > _TOO_MANY
    sets = 2 ** len(asked.machine.topology or ()) - 1
    return _is_aligned(asked) and sets ** len(set(_resources(asked.args))) > _TOO_MANY


def _walks_all_nodes(asked: BrokenCall) -> bool:
    """Whether a pod has devices on a machine with too many sets of nodes."""
    devices = any("/" in resource for resource in _resources(asked.args))
    return devices and _is_aligned(asked) and len(asked.machine.topology or ()) > _WIDE


_NEVER_ENDS: dict[str, Callable[[BrokenCall], bool]] = {
    distribution.ENDLESS_LOOP.name: _loops_over_whole_cores,
    distribution.OVERWRITTEN_LOOP.name: _overwrites_nodes,
    topology.ALL_COMBINATIONS.name: _walks_all_combinations,
    devices.ALL_NODES_FOR_DEVICES.name: _walks_all_nodes,
}
"""By defect: whether a call has all that it takes to meet it."""


def _is_aligned(asked: BrokenCall) -> bool:
    return asked.operation == "hints" or topology_policy(asked.config) != "none"


def _resources(args: messages.Args) -> Iterator[str]:
    """The resources that a pod's containers name, again and again."""
    if isinstance(args, messages.AdmitArgs | messages.HintsArgs):
        spec = args.pod["spec"]
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            resources = container.get("resources") or {}
            yield from {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
