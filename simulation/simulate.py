"""Simulates a node: which pods are admitted, what they get, and where a defect decided that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.simulation.admission import Simulation, admit_all
from numaproof.simulation.defect_warnings import DefectWarning, warnings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.simulation.admission import Question
    from numaproof.simulation.pods import DescribedPod


class CheckedSimulation(Simulation, frozen=True, omit_defaults=True):
    """A simulation with what its reader has to know besides.

    Attributes:
        warnings: one for each answer that named defects of the kubelet shaped.
        notes: what in the files was ignored or skipped, a sentence each.
    """

    warnings: tuple[DefectWarning, ...] = ()
    notes: tuple[str, ...] = ()


def simulate(
    question: Question,
    pods: Sequence[DescribedPod],
    folder: Path,
    *,
    notes: Sequence[str] = (),
    explain_all: bool = False,
) -> CheckedSimulation:
    """Admits the pods in order; `folder` is an empty directory for the checkpoints.

    Refusals are explained; with `explain_all`, admissions too. The notes are handed on.

    Raises:
        CannotAnswerError: the reference does not support what the configuration asks for.
    """
    own, others = folder / "node", folder / "others"
    for each in (own, others):
        each.mkdir()
    found = admit_all(question, pods, str(own), explain_all=explain_all)
    told: tuple[DefectWarning, ...] = ()
    if not question.documented:
        told = warnings(question, pods, found, others, explain_all=explain_all)
    return CheckedSimulation(**msgspec.structs.asdict(found), warnings=told, notes=tuple(notes))
