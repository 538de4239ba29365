"""Where kubelets read their configuration otherwise than documented."""

from __future__ import annotations

from numaproof.protocol.releases import between
from numaproof.reference.deviations.deviation import Defect

GATES_PANIC = Defect(
    "bad-feature-gates-panic",
    between("1.32"),
    "A feature gate that the release does not know must be refused.",
    "",
    "Unknown, locked or contradictory feature gates in the configuration file end in a panic "
    "while its defaults are filled in.",
    answers=False,
)

NO_ANSWER = (GATES_PANIC,)
"""Defects that end in no answer."""
