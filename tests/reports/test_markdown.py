from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.reports.markdown import LIMIT, markdown
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStream


def test_an_empty_stream_can_be_rendered() -> None:
    assert "The first event is missing" in markdown(summarize([]))


def test_a_message_equal_to_the_title_is_shown_once(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    said = "two containers have CPU 1"
    text = markdown(
        summarize(stream(divergence(title=said, message=said, steps=(), reproduce="", file=None)))
    )
    assert text.count(said) == 1


def test_the_list_of_untested_requirements_is_limited(stream: MakeStream, run: MakeRun) -> None:
    text = markdown(
        summarize(stream(run(), untested_requirements=("NONE-1", *(f"X-{n}" for n in range(50)))))
    )
    assert "51 requirements untested; see requirements.yaml for the reasons" in text
    assert "No affinity is given." in text
    assert "and 11 more" in text


@pytest.mark.parametrize("limit", [LIMIT, 20_000])
def test_a_report_is_limited_and_reports_omissions(
    stream: MakeStream, story: MakeRun, limit: int
) -> None:
    text = markdown(
        summarize(stream(*(story("long " * 900, case=f"case-{number}") for number in range(100)))),
        limit,
    )
    assert len(text.encode()) <= limit
    told = text.count("<details>")
    assert f"{100 - told} of 100 failures not shown here" in text
    assert told > 0


def test_a_fence_is_longer_than_any_run_of_backticks_inside(
    stream: MakeStream, story: MakeRun
) -> None:
    text = markdown(summarize(stream(story("`````\n# out"))))
    assert "\n``````text\n" in text
