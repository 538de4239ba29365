"""A scenario: a case and the machine that it is played on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class Scenario:
    """A case on one machine.

    Attributes:
        case: the steps.
        machine: what the implementation is told of the machine.
        root: makes the machine's tree and returns its path; None where no step needs one.
    """

    case: Case
    machine: MachineInfo
    root: Callable[[], Path] | None = None
