"""What defects of the kubelets may shape of the answer about an upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.simulation.defects import DefectNote
    from numaproof.simulation.upgrades.outcomes import Upgrade


def answers(found: Upgrade) -> dict[tuple[str, str], object]:
    """The answers by the part of the upgrade and what they are about."""
    by_subject: dict[tuple[str, str], object] = {("today", ""): found.today or True}
    by_subject |= {("today", name): "refused" for name in found.never_here}
    for part, errors in (("today", found.errors_today), ("configuration", found.errors)):
        by_subject |= {(part, one.message): one for one in errors}
    for part, outcome in (("staying", found.staying), ("drained", found.drained)):
        by_subject[part, ""] = outcome.starts
        by_subject |= {(part, one.file): one for one in outcome.files}
        by_subject |= {(part, one.pod): one for one in outcome.pods}
        by_subject |= {("today", one.pod): "admitted" for one in outcome.pods}
    return by_subject


def telling(notes: tuple[DefectNote, ...]) -> tuple[DefectNote, ...]:
    """The notes without those about what only one side has, which follows from the others."""
    on_both_sides = (one for one in notes if None not in (one.kubelet, one.documented))
    return tuple(on_both_sides) or notes
