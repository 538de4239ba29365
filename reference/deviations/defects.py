"""All named defects: behaviours of real kubelets that contradict their documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cadvisor.cpus import CoreIdentity
from numaproof.reference.cadvisor.discovery import NodeOrder
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.deviations import (
    assignment,
    capacity,
    cpu,
    devices,
    discovery,
    distribution,
    memory,
    node,
    pods,
    resize,
    topology,
)
from numaproof.reference.deviations.deviation import (
    Defect,
    UndocumentedBehaviour,
    defect_of,
    deviation_of,
    name_of,
)
from numaproof.reference.topology.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFINED = [
    value
    for module in (
        *(assignment, distribution, cpu, node, memory, pods, devices, topology, capacity),
        *(resize, discovery),
    )
    for value in vars(module).values()
]

OVERRIDES: tuple[type, ...] = tuple(
    value for value in _DEFINED if isinstance(value, type) and "deviation" in vars(value)
)
"""Every class that overrides a rule; its ``deviation`` describes it."""

DEFECTS: tuple[Defect, ...] = (
    *dict.fromkeys(defect for one in OVERRIDES if (defect := defect_of(one))),
    *(value for value in _DEFINED if isinstance(value, Defect)),
)
"""All named defects, each once; those that never end with an answer come last."""

CHANGES: tuple[UndocumentedBehaviour, ...] = tuple(
    found
    for found in map(deviation_of, OVERRIDES)
    if isinstance(found, UndocumentedBehaviour) and found.name
)
"""All undocumented changes between releases, except changes in the effects of a defect."""

_RULES: Mapping[str, tuple[type, ...]] = {
    "discover": (NodeOrder, CoreIdentity),
    "merge": (Distances,),
    "assign": (StaticCPUPolicy, Assignment, DistributedAssignment),
}

SHOWN_WITHOUT_NODE = {
    operation: frozenset(name_of(one) for one in OVERRIDES if issubclass(one, rules))
    for operation, rules in _RULES.items()
}
"""The names of the deviations that are visible without a started node, by operation."""
