"""A case as it runs on one machine, with a value in the place of every expression."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import expressions, releases
from numaproof.conformance.cases.errors import CaseError
from numaproof.conformance.cases.schema import Machines
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import ImplementationFailure
from numaproof.conformance.execution.player import playing
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.baselines import DOCUMENTED
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator
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
        message = (
            f"kubernetes: {case.kubernetes} includes none of the releases"
            f" {RELEASES[0]} to {RELEASES[-1]}"
        )
        raise CaseError(case.id, 0, message)
    target = reference_target(known[-1], DOCUMENTED)
    run = Run(target, case, machine.info or MachineInfo(), machine.tree, scratch)
    player = run.player
    with _answered(case, 0):
        names = player.names()
        config = expressions.expand(case.config, names)
        devices = expressions.expand(msgspec.to_builtins(case.devices), names)
        preferred = expressions.expand(case.preferred, names)
        player.begin()
    steps: list[Step] = []
    for number, step in enumerate(case.steps, 1):
        with _answered(case, number):
            steps.append(player.expanded(step))
            player.step(steps[-1])
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


@contextmanager
def _answered(case: Case, step: int) -> Iterator[None]:
    """Reports a step that is badly written, or that the reference can't play."""
    with playing(case.id, step):
        try:
            yield
        except NotSupportedError as missing:
            raise CaseError(case.id, step, f"the reference does not have {missing}") from None
        except ImplementationFailure as failure:
            raise CaseError(case.id, step, str(failure)) from None
