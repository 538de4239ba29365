"""A case as it runs on one machine, with a value in the place of every expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import expressions, releases
from numaproof.conformance.cases.errors import CaseError
from numaproof.conformance.cases.schema import Machines
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.sides import DOCUMENTED
from numaproof.protocol.codec import ProtocolError
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case, Step
    from numaproof.conformance.execution.machines import AnyMachine


def filled_in(case: Case, machine: AnyMachine, scratch: Path) -> Case:
    """The case with its expressions replaced by what they come to on a machine.

    ``allocatable`` and ``reserved`` are what the last start reports, so the case is played
    against the reference, as a kubelet of the newest release that the case is for.

    Args:
        case: the case, which must run on the machine.
        machine: where it runs.
        scratch: an empty or missing directory for state directories.

    Raises:
        CaseError: the case can't be played as it is written.
    """
    known = [one for one in RELEASES if releases.includes(case.kubernetes, one)]
    if not known:
        raise CaseError(
            case.id,
            0,
            f"kubernetes: {case.kubernetes!r} allows no release that numaproof knows"
            f" ({RELEASES[0]} to {RELEASES[-1]})",
        )
    target = reference_target(known[-1], DOCUMENTED)
    run = Run(target, case, machine.info or MachineInfo(), machine.tree, scratch)
    player = run.player
    steps: list[Step] = []
    number = 0
    try:
        names = player.names()
        config = expressions.expand(case.config, names)
        devices = expressions.expand(msgspec.to_builtins(case.devices), names)
        preferred = expressions.expand(case.preferred, names)
        player.begin()
        for step in case.steps:
            number = len(steps) + 1
            steps.append(player.expanded(step))
            player.step(steps[-1])
    except CaseError:
        raise
    except (ValueError, LookupError, ProtocolError) as error:
        raise CaseError(case.id, number, str(error)) from error
    made: dict[str, Any] = {
        **msgspec.to_builtins(case),
        "machines": Machines() if case.machine else Machines(names=(machine.name,)),
        "config": config,
        "devices": devices,
        "preferred": preferred,
        "let": {},
        "steps": steps,
        "machine": case.machine,
    }
    return msgspec.convert(made, type(case), from_attributes=True)
