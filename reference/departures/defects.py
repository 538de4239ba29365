"""Every named defect of real kubelets: where they break their own documents."""

from __future__ import annotations

from numaproof.reference.departures import (
    assignment,
    configuration,
    cpu,
    devices,
    memory,
    readmission,
    topology,
)
from numaproof.reference.departures.departure import Defect

OVERRIDES: tuple[type, ...] = (
    *assignment.DEPARTURES,
    *cpu.DEPARTURES,
    *readmission.DEPARTURES,
    *memory.DEPARTURES,
    *devices.DEPARTURES,
    *topology.DEPARTURES,
)
"""Every class that departs from a rule; its ``departure`` says what it is."""

_NO_ANSWER = (
    *configuration.NO_ANSWER,
    *assignment.NO_ANSWER,
    *memory.NO_ANSWER,
    *devices.NO_ANSWER,
    *topology.NO_ANSWER,
)


def defect_of(override: type) -> Defect | None:
    """The named defect that an override makes, or that it builds on; None for other changes."""
    found = (vars(base).get("departure") for base in override.__mro__)
    return next((one for one in found if isinstance(one, Defect)), None)


DEFECTS: tuple[Defect, ...] = (
    *dict.fromkeys(defect for one in OVERRIDES if (defect := defect_of(one))),
    *_NO_ANSWER,
)
"""Every named defect once; the last end in no answer."""
