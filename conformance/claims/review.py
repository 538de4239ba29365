"""What a run shows of the claims of an implementation: which are missing, and which are untrue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.protocol import events, features
from numaproof.protocol.messages import LEVELS, Hello, Level

if TYPE_CHECKING:
    from collections.abc import Iterator


_SEVERAL = 2
"""Failures from which on a claim is doubted: a single one says little."""


@dataclass
class ClaimsTally:
    """Counts, run by run, what the claims of an implementation came to.

    Attributes:
        hello: what it claims.
        called: what is counted: ``case run`` or ``example``.
    """

    hello: Hello
    called: str = "case run"
    _unclaimed: Counter[str] = field(default_factory=Counter)
    _needed: Counter[str] = field(default_factory=Counter)
    _declined: Counter[str] = field(default_factory=Counter)
    _failed: Counter[str] = field(default_factory=Counter)
    _declining: int = 0
    _passed: int = 0
    _bad: int = 0
    _compared: int = 0
    _agreed: Level = LEVELS[-1]

    def count_case(self, finished: events.CaseFinished) -> None:
        """Counts a case run."""
        if finished.agreed and LEVELS.index(finished.agreed) < LEVELS.index(self._agreed):
            self._agreed = finished.agreed
        self._compared += finished.agreed is not None
        self.count(
            finished.needs,
            finished.unclaimed,
            finished.declined,
            failed=finished.outcome not in events.GOOD,
        )

    def count(
        self, needs: tuple[str, ...], unclaimed: str, declined: tuple[str, ...], *, failed: bool
    ) -> None:
        """Counts a run.

        Args:
            needs: the claims that its calls needed.
            unclaimed: the first of them that is not made; empty if all are.
            declined: those that were answered ``unsupported``.
            failed: whether it failed.
        """
        if unclaimed:
            self._unclaimed[unclaimed] += 1
            return
        self._needed.update(needs)
        self._declined.update(declined)
        self._declining += bool(declined)
        self._passed += not (failed or declined)
        if failed:
            self._bad += 1
            self._failed.update(needs)

    def review(self) -> events.ClaimsReview:
        """What all the runs show."""
        return events.ClaimsReview(
            assumed=self.hello.features is None,
            unclaimed=dict(sorted(self._unclaimed.items(), key=lambda one: (-one[1], one[0]))),
            declined=self._declining,
            possible=tuple(self._possible()),
            untrue=tuple(self._untrue()),
        )

    def _possible(self) -> Iterator[str]:
        """Features that its operations and policies allow and runs wanted; a higher level."""
        higher = LEVELS.index(self._agreed) > LEVELS.index(self.hello.level)
        if self._compared and self._passed and higher and not self._bad:
            yield f"level {self._agreed} (no answer differed)"
        claimed = features.claimed(self.hello)
        for name in features.NAMED:
            if (
                name not in claimed
                and f"feature {name}" in self._unclaimed
                and features.FEATURES[name].allowed(self.hello)
            ):
                yield f"feature {name}"

    def _untrue(self) -> Iterator[str]:
        for claim, needed in sorted(self._needed.items()):
            if self._declined[claim] == needed:
                yield (
                    f"claims {claim}, but answered `unsupported` in {self._every(needed)} that"
                    f" {'needs' if needed == 1 else 'need'} it"
                )
            # Where nothing passed, the failures say nothing of this claim in particular.
            elif self._failed[claim] == needed >= _SEVERAL and self._passed:
                yield f"claims {claim}, but failed {self._every(needed)} that need it"

    def _every(self, count: int) -> str:
        return f"the only {self.called}" if count == 1 else f"all {count} {self.called}s"
