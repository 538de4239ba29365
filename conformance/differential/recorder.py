"""Plays scenarios against an implementation and keeps every answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import Case, Step
from numaproof.conformance.differential.lockstep import ComparedRun
from numaproof.conformance.differential.recordings import RecordedCall, Recording, kept_answer
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import Crashed, ImplementationFailure
from numaproof.conformance.execution.shown import cut
from numaproof.conformance.fuzzing.generation.alone import merge
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.folders.removal import remove_tree
from numaproof.folders.scratch import require_room
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.run import Target


def seeded_merges(seeds: Sequence[int], capabilities: Capabilities) -> Case:
    """One merge for each seed, as one case: the same for the same capabilities."""
    steps = (Step(merge=merge(Seeded(seed), capabilities), expect="anything") for seed in seeds)
    return Case(
        id=f"merges-{seeds[0]}",
        title="",
        requirements=(),
        level="invariants",
        machine=MachineInfo(),
        steps=tuple(steps),
    )


def record(target: Target, case: Case, seed: int | None, scratch: Path) -> Recording | None:
    """What an implementation answers to a scenario; None if it does not support it.

    Nobody should be held to a fault, nor to a tree: whoever answers is told of the machine.

    Args:
        target: what answers.
        case: the scenario, with its machine.
        seed: that it was made from.
        scratch: where state directories are made; left empty.

    Raises:
        CaseError: the case cannot be played as written.
        ImplementationFailure: there was no answer, or it was a fault.
    """
    try:
        return _recorded(target, msgspec.structs.replace(case, tree=False), seed, scratch)
    except ImplementationFailure:
        require_room(scratch)
        raise


def _recorded(target: Target, case: Case, seed: int | None, scratch: Path) -> Recording | None:
    assert case.machine is not None
    folder = scratch / "recording"
    try:
        alone = replace(target, oracle=None)
        run = ComparedRun(alone, case, case.machine, None, folder)
        session = run.player.session
        try:
            run.player.play()
            session.check_state()
        except NotSupportedError:
            return None
        answers = [
            (call.operation, session.normal(call.answer))
            for call in session.calls
            if call.answer is not None
        ]
    finally:
        remove_tree(folder)
    for operation, answer in answers:
        if isinstance(answer, messages.Fault):
            raise Crashed(cut(f"{operation} ended in a fault: {answer.message}"), answer.trace)
    calls = tuple(RecordedCall(operation, kept_answer(answer)) for operation, answer in answers)
    return Recording(msgspec.structs.replace(case, title=""), calls, seed)


def record_seed(target: Target, seed: int, scratch: Path) -> Recording | None:
    """The recording of a seed's scenario; see `record`."""
    return record(target, seeded_scenario(seed, target.capabilities), seed, scratch)


def record_merges(target: Target, seeds: Sequence[int], scratch: Path) -> Recording | None:
    """The recording of the merges of seeds; see `record`."""
    return record(target, seeded_merges(seeds, target.capabilities), seeds[0], scratch)
