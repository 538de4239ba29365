"""Groups failures with the same cause: a bug shows on every machine that it affects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reports.layout import plural
from numaproof.reports.untrusted import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.events import Outcome
    from numaproof.reports.story import Failure

# Numbers and lists of them (CPU sets) differ between machines where the bug does not.
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:[-,.]\d+)*")


def likeness(name: str, outcome: Outcome, message: str) -> tuple[str, Outcome, str]:
    """The key that failures in a group share: case, outcome, and message without numbers."""
    return name, outcome, _NUMBERS.sub("#", message)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Similar failures: the first is shown in detail, the others by machine."""

    first: Failure
    others: tuple[Failure, ...]

    @property
    def size(self) -> int:
        """The number of failures."""
        return 1 + len(self.others)

    def elsewhere(self, most: int) -> str:
        """Where else it failed, naming up to `most` machines; empty if nowhere."""
        if not self.others:
            return ""
        names = [visible(failure.machine) for failure in self.others]
        more = " …" if len(names) > most else ""
        return f"and on {plural(len(names), 'more machine')}: {', '.join(names[:most])}{more}"


def grouped(failures: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    """Groups the failures; the first group of each case comes before any second ones.

    Findings of fuzzing are never grouped: each has its own machine and steps.
    """
    alike: dict[tuple[object, ...], list[Failure]] = {}
    for number, failure in enumerate(failures):
        key = likeness(failure.name, failure.outcome, failure.message)
        alike.setdefault(key if failure.name else (number,), []).append(failure)
    ranked: list[tuple[int, FailureGroup]] = []
    seen: dict[str, int] = {}
    for first, *others in alike.values():
        rank = seen.get(first.name, 0) if first.name else 0
        seen[first.name] = rank + 1
        ranked.append((rank, FailureGroup(first, tuple(others))))
    return tuple(group for _, group in sorted(ranked, key=lambda pair: pair[0]))
