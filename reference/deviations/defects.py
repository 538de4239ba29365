"""Every named defect of real kubelets: where they break their own documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cadvisor.discovery import NodeOrder
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.deviations import (
    assignment,
    cpu,
    devices,
    distribution,
    memory,
    node,
    pods,
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
    for module in (assignment, distribution, cpu, node, memory, pods, devices, topology)
    for value in vars(module).values()
]

OVERRIDES: tuple[type, ...] = tuple(
    value for value in _DEFINED if isinstance(value, type) and "deviation" in vars(value)
)
"""Every class that deviates from a rule; its ``deviation`` says what it is."""

DEFECTS: tuple[Defect, ...] = (
    *dict.fromkeys(defect for one in OVERRIDES if (defect := defect_of(one))),
    *(value for value in _DEFINED if isinstance(value, Defect)),
)
"""Every named defect once; the last end in no answer."""

CHANGES: tuple[UndocumentedBehaviour, ...] = tuple(
    found
    for found in map(deviation_of, OVERRIDES)
    if isinstance(found, UndocumentedBehaviour) and found.name
)
"""Every change between releases that no document tells, but for those of how a defect shows."""

_RULES: Mapping[str, tuple[type, ...]] = {
    "discover": (NodeOrder,),
    "merge": (Distances,),
    "assign": (StaticCPUPolicy, Assignment, DistributedAssignment),
}

SHOWN_WITHOUT_NODE = {
    operation: frozenset(name_of(one) for one in OVERRIDES if issubclass(one, rules))
    for operation, rules in _RULES.items()
}
"""The names of those that show where no node was started, by operation; all others do not."""
