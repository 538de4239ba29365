"""What every report says of the claims of an implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.events import ClaimsReview
from numaproof.reports.html import html
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.wording import claims_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.events import AnyEvent

    MakeStream = Callable[..., list[AnyEvent]]

REVIEW = ClaimsReview(
    assumed=True,
    unclaimed={"operation devices": 213, "feature restart": 1},
    declined=12,
    possible=("feature restart", "level placement (no answer differed)"),
    untrue=("claims feature sidecars, but failed all 2 case runs that need it",),
)
LINES = (
    "claims feature sidecars, but failed all 2 case runs that need it.",
    "operation devices not claimed: 213 case runs not asked.",
    "feature restart not claimed: 1 case run not asked.",
    "Claimed, but answered unsupported: 12 case runs.",
    "Could be claimed: level placement (no answer differed).",
    "Allowed by its operations, but not claimed and not asked: feature restart.",
)


def test_the_claims_are_told_in_sentences(stream: MakeStream) -> None:
    lines = claims_lines(summarize(stream(claims=REVIEW)))
    assert lines[:-1] == LINES
    assert lines[-1].startswith("hello has no `features`, so all that")


def test_only_the_most_frequent_missing_claims_are_named(stream: MakeStream) -> None:
    many = ClaimsReview(unclaimed={f"operation o{number}": 2 for number in range(23)})
    lines = claims_lines(summarize(stream(claims=many)))
    assert lines[-1] == "Other claims not made: 6 case runs not asked."
    assert len(lines) == 21


def test_the_markdown_and_the_page_list_them(stream: MakeStream) -> None:
    summary = summarize(stream(claims=REVIEW))
    assert "operation devices not claimed: 213 case runs not asked" in html(summary)
    assert "213 case runs not asked" in markdown(summary)


def test_the_json_has_them_as_values(stream: MakeStream) -> None:
    claims = summarize(stream(claims=REVIEW)).plain()["claims"]
    assert claims["unclaimed"] == {"operation devices": 213, "feature restart": 1}
    assert claims["assumed"]
    assert summarize(stream()).plain()["claims"] is None
