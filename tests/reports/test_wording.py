"""Reports truncate long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.events import ClaimsReview
from numaproof.reports.summary import summarize
from numaproof.reports.wording import claims_lines, leftover_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.events import AnyEvent

    MakeStream = Callable[..., list[AnyEvent]]
    MakeRun = Callable[..., AnyEvent]


def test_only_the_first_of_many_processes_are_named(stream: MakeStream) -> None:
    lines = leftover_lines(summarize(stream(leftover_processes=tuple(map(str, range(23))))))
    assert lines[-1] == "Could not end 3 more; see events.jsonl."
    assert len(lines) == 21


def test_only_the_most_frequent_missing_claims_are_named(stream: MakeStream) -> None:
    many = ClaimsReview(missing_claims={f"operation o{number}": 2 for number in range(23)})
    lines = claims_lines(summarize(stream(claims=many)))
    assert lines[-1] == "Other features not claimed: 6 case runs skipped."
    assert len(lines) == 21
