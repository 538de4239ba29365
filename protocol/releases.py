"""The supported Kubernetes releases.

`numaproof.reference.deviations.releases` describes how they differ. The names and their order are
defined here because code that judges the reference must not import the reference.
"""

from __future__ import annotations

RELEASES = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
"""The minor releases, oldest first."""

NEWEST = RELEASES[-1]
"""The default release."""


def between(first: str, last: str = RELEASES[-1]) -> tuple[str, ...]:
    """Returns the releases from `first` to `last`, inclusive.

    Raises:
        ValueError: one of them is not a supported release.
    """
    return RELEASES[RELEASES.index(first) : RELEASES.index(last) + 1]
