"""Every named defect of real kubelets: where they break their own documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.cadvisor.order import NodeOrder
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.departures import (
    assignment,
    configuration,
    cpu,
    devices,
    distribution,
    memory,
    pods,
    quota,
    readmission,
    reclaiming,
    topology,
)
from numaproof.reference.departures.departure import (
    Change,
    Defect,
    defect_of,
    departure_of,
    name_of,
)
from numaproof.reference.topology.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERRIDES: tuple[type, ...] = (
    *assignment.DEPARTURES,
    *distribution.DEPARTURES,
    *cpu.DEPARTURES,
    *readmission.DEPARTURES,
    *reclaiming.DEPARTURES,
    *memory.DEPARTURES,
    *pods.DEPARTURES,
    *quota.DEPARTURES,
    *devices.DEPARTURES,
    *topology.DEPARTURES,
)
"""Every class that departs from a rule; its ``departure`` says what it is."""

_NO_ANSWER = (
    *configuration.NO_ANSWER,
    *assignment.NO_ANSWER,
    *distribution.NO_ANSWER,
    *memory.NO_ANSWER,
    *devices.NO_ANSWER,
    *topology.NO_ANSWER,
)


DEFECTS: tuple[Defect, ...] = (
    *dict.fromkeys(defect for one in OVERRIDES if (defect := defect_of(one))),
    *_NO_ANSWER,
)
"""Every named defect once; the last end in no answer."""

CHANGES: tuple[Change, ...] = tuple(
    found for found in map(departure_of, OVERRIDES) if isinstance(found, Change) and found.name
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
