"""The page of two compared runs in a browser: the first screen, links and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.boards import Visit
from numaproof.reports.anchors import anchor
from numaproof.reports.comparison_page import comparison_html
from numaproof.reports.run_comparison import compare
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from conftest import MakeDivergence, MakeRun, MakeStream

pytestmark = pytest.mark.commands

EVIL = "<b>bold</b>"


@pytest.fixture
def comparison(
    browser: Browser, tmp_path: Path, stream: MakeStream, run: MakeRun
) -> Iterator[Visit]:
    """A visit to the page of a comparison with each kind of change."""
    wrong = {"signature": "admit: cpus differs", "message": f"wrong CPUs {EVIL}"}
    crash = {"signature": "crash at admit", "message": "it exited", "reproduce": "replay breaks"}
    before = stream(
        run("fail", case="other-cause", **wrong),
        run("fail", case="fixed", **wrong),
        run(case="slow", seconds=0.5),
        run(case="gone"),
    )
    after = stream(
        run("fail", case="new", **wrong),
        *(run("crash", case="breaks", machine=name, **crash) for name in ("desktop", "server")),
        run("crash", case="other-cause", **crash),
        run(case="fixed"),
        run(case="slow", seconds=4.0),
    )
    page = comparison_html(compare(summarize(before), summarize(after)))
    (tmp_path / "comparison.html").write_text(page, "utf-8")
    visit = Visit(browser, tmp_path, viewport={"width": 1280, "height": 800})
    yield visit
    assert visit.complaints == []
    visit.context.close()


def test_the_first_screen_shows_the_largest_new_cause(comparison: Visit) -> None:
    page = comparison.open("comparison.html")
    assert page.locator("h1").inner_text() == (
        "3 newly failing · 1 fixed · 1 for another cause · 1 not in the later run"
        " · 1 unchanged · 1 slower"
    )
    first = page.locator(".first").inner_text()
    for text in ("it exited", "on desktop, server", "replay breaks"):
        assert text in first
    assert page.locator(".causes tbody th").all_inner_texts() == [
        "Newly failing: it exited",
        f"Newly failing: wrong CPUs {EVIL}",
        "Failing for another cause: it exited",
        "Fixed",
        "Slower",
        "Not in the later run",
    ]


def test_a_link_to_a_failure_opens_its_change(comparison: Visit) -> None:
    page = comparison.open(f"comparison.html#{anchor('failure', 'breaks', 'server')}")
    line = page.locator(f'[id="{anchor("failure", "breaks", "desktop")}"]')
    assert "breaks on desktop, server: not in the run → † crash: it exited" in line.inner_text()
    page = comparison.open(f"comparison.html#{anchor('slower', 'slow', 'desktop')}")
    assert page.get_by_text("0.5 s → 4.0 s").is_visible()


def test_changes_are_found(comparison: Visit) -> None:
    page = comparison.open("comparison.html?text=wrong+cpus")
    assert page.locator("#shown").inner_text() == "2 of 7 changes"
    assert page.locator(".card:visible").count() == 2
    page.select_option("[name=outcome]", "pass")
    assert page.locator("#shown").inner_text() == "1 of 7 changes"
    assert page.url.endswith("?text=wrong+cpus&outcome=pass")


def test_equal_runs_have_a_short_page(stream: MakeStream, run: MakeRun) -> None:
    same = summarize(stream(run()))
    page = comparison_html(compare(same, same))
    assert "<h1>Nothing newly failing" in page
    assert "<script" not in page


def test_findings_of_fuzzing_are_changes(stream: MakeStream, divergence: MakeDivergence) -> None:
    kind = {"kind": "fuzz"}
    old = summarize(stream(start=kind, outcomes={"pass": 1}))
    new = summarize(stream(divergence(signature="a"), start=kind, outcomes={"fail": 1}))
    page = comparison_html(compare(old, new))
    assert "Two containers share CPU 1" in page
    assert "numaproof replay failure-1.yaml" in page
