"""The Kubernetes releases that the project knows.

The reference says what each of them does (`numaproof.reference.deviations.releases`). Cases and
invariants need their names and order alone: what judges the reference must not import it.
"""

from __future__ import annotations

RELEASES = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
"""The minor releases, oldest first."""

NEWEST = RELEASES[-1]
"""The release that is meant where none is named."""


def between(first: str, last: str = RELEASES[-1]) -> tuple[str, ...]:
    """The releases from one to another, both included.

    Raises:
        ValueError: one of them is not a release of the project's.
    """
    return RELEASES[RELEASES.index(first) : RELEASES.index(last) + 1]
