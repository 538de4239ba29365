"""A scenario: a case and the machine that it is played on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.trees.machine_trees import MachineTree
    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class Scenario:
    """A case on one machine.

    Attributes:
        case: the steps.
        machine: what the implementation is told of the machine.
        tree: the machine's tree; None where no step needs one, or one can be made of `machine`.
    """

    case: Case
    machine: MachineInfo
    tree: MachineTree | None = None
