"""Which causes may disappear once another cause is fixed.

A bug often makes other checks fail as well. A cause may be a consequence of a larger one if every
one of its failures is explained by it in one of two ways: the same case fails with the larger cause
on another machine, so the bug is active in its calls; or both are wrong answers that violate the
same requirement. Both are hints, not proofs: a run after the fix decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.protocol.events import ReportedRequirement
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure


def leading_causes(groups: Sequence[FailureGroup]) -> tuple[int | None, ...]:
    """Returns, for each group, the position of the first earlier group that may explain it."""
    cases = [{one.name for one in group.failures} - {""} for group in groups]
    requirements = [
        {row.id for one in group.failures for row in _requirements_of(one)} for group in groups
    ]

    def explains(earlier: int, group: FailureGroup) -> bool:
        return all(
            one.name in cases[earlier]
            or any(row.id in requirements[earlier] for row in _requirements_of(one))
            for one in group.failures
        )

    return tuple(
        next((earlier for earlier in range(number) if explains(earlier, group)), None)
        for number, group in enumerate(groups)
    )


def _requirements_of(failure: Failure) -> tuple[ReportedRequirement, ...]:
    """The requirements that a wrong answer violates; none if the program broke."""
    return failure.requirements if failure.outcome == "fail" else ()
