"""Reviews an implementation's claims after a run: which are missing, and which look untrue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.protocol import events, features
from numaproof.protocol.messages import LEVELS, Hello, Level

if TYPE_CHECKING:
    from collections.abc import Iterator


_SEVERAL = 2
"""The number of failures after which a claim is doubted, because a single one says little."""


@dataclass
class ClaimsTally:
    """Counts how claims fared in the runs so far.

    Attributes:
        hello: the claims.
        unit_noun: what is counted: ``case run`` or ``example``.
    """

    hello: Hello
    unit_noun: str = "case run"
    _unclaimed_counts: Counter[str] = field(default_factory=Counter)
    _needed_counts: Counter[str] = field(default_factory=Counter)
    _declined_counts: Counter[str] = field(default_factory=Counter)
    _failed_counts: Counter[str] = field(default_factory=Counter)
    _declined_runs: int = 0
    _passed_runs: int = 0
    _failed_runs: int = 0
    _compared_runs: int = 0
    _agreed_level: Level = LEVELS[-1]

    def count_case(self, event: events.CaseFinished) -> None:
        """Counts a case run."""
        if event.agreed_level and LEVELS.index(event.agreed_level) < LEVELS.index(
            self._agreed_level
        ):
            self._agreed_level = event.agreed_level
        self._compared_runs += event.agreed_level is not None
        self.count(
            event.needs,
            event.missing_claim,
            event.declined_claims,
            has_failed=event.outcome not in events.GOOD,
        )

    def count(
        self,
        needs: tuple[str, ...],
        missing_claim: str,
        declined_claims: tuple[str, ...],
        *,
        has_failed: bool,
    ) -> None:
        """Counts a run.

        Args:
            needs: the claims that the run's calls needed.
            missing_claim: the first missing claim; empty if none is missing.
            declined_claims: the claims whose calls were answered ``unsupported``.
            has_failed: whether the run failed.
        """
        if missing_claim:
            self._unclaimed_counts[missing_claim] += 1
            return
        self._needed_counts.update(needs)
        self._declined_counts.update(declined_claims)
        self._declined_runs += bool(declined_claims)
        self._passed_runs += not (has_failed or declined_claims)
        if has_failed:
            self._failed_runs += 1
            self._failed_counts.update(needs)

    def review(self) -> events.ClaimsReview:
        """The review of all runs."""
        return events.ClaimsReview(
            assumes_features=self.hello.features is None,
            missing_claims=dict(
                sorted(self._unclaimed_counts.items(), key=lambda item: (-item[1], item[0]))
            ),
            declined_runs=self._declined_runs,
            possible=tuple(self._possible()),
            untrue=tuple(self._untrue()),
        )

    def _possible(self) -> Iterator[str]:
        """Unclaimed features that runs needed and the claims allow, and possibly a higher level."""
        higher = LEVELS.index(self._agreed_level) > LEVELS.index(self.hello.level)
        if self._compared_runs and self._passed_runs and higher and not self._failed_runs:
            yield f"level {self._agreed_level} (no answer differed)"
        claimed = features.claimed_features(self.hello)
        for name in features.NAMED:
            if (
                name not in claimed
                and f"feature {name}" in self._unclaimed_counts
                and features.FEATURES[name].is_allowed(self.hello)
            ):
                yield f"feature {name}"

    def _untrue(self) -> Iterator[str]:
        for claim, needed in sorted(self._needed_counts.items()):
            if self._declined_counts[claim] == needed:
                yield (
                    f"claims {claim}, but answered `unsupported` in {self._every(needed)} that"
                    f" {'needs' if needed == 1 else 'need'} it"
                )
            # If nothing passed, the failures don't point to this claim in particular.
            elif self._failed_counts[claim] == needed >= _SEVERAL and self._passed_runs:
                yield f"claims {claim}, but failed {self._every(needed)} that need it"

    def _every(self, count: int) -> str:
        return f"the only {self.unit_noun}" if count == 1 else f"all {count} {self.unit_noun}s"
