"""A run's page in a browser: the first screen, links, search, copying, keyboard and printing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from builders.boards import Visit
from numaproof.protocol.events import ReportedRequirement
from numaproof.reports.anchors import anchor
from numaproof.reports.html import html
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from conftest import MakeRun, MakeStream

pytestmark = pytest.mark.commands

LOST = "invariant no-cpu-lost"


@pytest.fixture
def report(
    browser: Browser, tmp_path: Path, stream: MakeStream, story: MakeRun, run: MakeRun
) -> Iterator[Visit]:
    """A visit to the page of a run with 41 failures of two causes, and a passed case."""
    failures = [
        story("CPUs 2-3 are lost", case=f"lost-{number}", signature=LOST) for number in range(39)
    ]
    fields = {"machine": "server", "signature": "memory differs", "requirements": ("NONE-1",)}
    failures.append(story("CPU 7 is lost", case="lost-20", machine="server", signature=LOST))
    other = story("memory differs", case="memory", **fields)
    events = stream(*failures, other, run(case="quiet", title="Quiet pods are admitted"))
    (tmp_path / "report.html").write_text(html(summarize(events)), "utf-8")
    visit = Visit(browser, tmp_path, viewport={"width": 1280, "height": 800})
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield visit
    assert visit.complaints == []
    visit.context.close()


def test_the_first_screen_shows_the_cause_and_its_command(report: Visit) -> None:
    page = report.open("report.html")
    first = page.locator(".first")
    box = first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 800
    for text in ("CPUs 2-3 are lost", "CPUs are exclusive.", "numaproof check --select"):
        assert text in first.inner_text()


def test_a_link_opens_the_folded_failure(report: Visit) -> None:
    failure = anchor("failure", "lost-20", "desktop")
    page = report.open(f"report.html?text=nothing+like+it#{failure}")
    target = page.locator(f'[id="{failure}"]')
    assert target.is_visible()
    target.locator("a").click()
    assert page.evaluate("navigator.clipboard.readText()").endswith(f"report.html#{failure}")


def test_a_link_to_another_machine_opens_the_line_of_its_case(report: Visit) -> None:
    page = report.open(f"report.html#{anchor('failure', 'lost-20', 'server')}")
    line = page.locator(f'[id="{anchor("failure", "lost-20", "desktop")}"]')
    assert line.is_visible()
    assert "lost-20 on desktop, server: CPUs 2-3 are lost" in line.inner_text()


def test_a_link_to_a_failure_that_is_gone_says_so_and_leads_to_its_case(report: Visit) -> None:
    page = report.open(f"report.html#{anchor('failure', 'quiet', 'desktop')}")
    notice = page.locator("[role=status].warning")
    assert notice.inner_text() == "quiet on desktop does not fail in this run. Its case"
    notice.locator("a").click()
    assert page.locator(f'[id="{anchor("case", "quiet")}"]').is_visible()
    assert notice.is_hidden()


def test_a_linked_line_shows_its_title_and_command(report: Visit) -> None:
    failure = anchor("failure", "lost-20", "desktop")
    page = report.open(f"report.html#{failure}")
    line = page.locator(f'[id="{failure}"]')
    assert "Whole CPUs are exclusive" in line.inner_text()
    line.get_by_text("Copy command").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("numaproof check --select")


def test_the_first_box_tells_why_it_comes_first(report: Visit) -> None:
    text = report.open("report.html").locator(".first").inner_text()
    assert "First because it explains 40 of 41 failures (39 cases, 2 machines)." in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NONE-1", "1 of 41 failures, 1 of 41 cases"),
        ("lost static-1", "40 of 41 failures, 39 of 41 cases"),
        ("lost-20 server", "2 of 41 failures, 1 of 41 cases"),
        ("whole cpus are exclusive", "41 of 41 failures, 40 of 41 cases"),
        ("memory differs", "1 of 41 failures, 0 of 41 cases"),
    ],
)
def test_failures_are_found_by_requirement_title_machine_and_message(
    report: Visit, text: str, found: str
) -> None:
    page = report.open("report.html")
    page.fill("[name=text]", text)
    assert page.locator("#shown").inner_text() == found


def test_a_case_is_found_by_its_title(report: Visit) -> None:
    page = report.open("report.html")
    page.keyboard.press("/")
    page.keyboard.type("quiet pods")
    assert page.locator(f'[id="{anchor("case", "quiet")}"]').is_visible()
    assert page.locator(".card:visible").count() == 0
    assert page.url.endswith("?text=quiet+pods")
    page.reload()
    assert page.locator("#shown").inner_text() == "0 of 41 failures, 1 of 41 cases"
    page.fill("[name=text]", "no such words")
    assert page.locator("#shown").inner_text() == "Nothing found."
    page.click("[type=reset]")
    page.wait_for_url(lambda address: "?" not in address)
    assert page.locator(".card:visible").count() == 2


def test_hits_are_on_the_screen_and_enter_opens_the_first(report: Visit) -> None:
    page = report.open("report.html")
    page.keyboard.press("/")
    page.keyboard.type("memory differs")
    card = page.locator(".card:visible")
    box = card.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 800
    assert page.locator(".first").is_hidden()
    page.keyboard.press("Enter")
    assert card.get_attribute("open") == ""
    assert page.url.endswith(f"?text=memory+differs#{anchor('failure', 'memory', 'server')}")


def test_a_cell_of_the_matrix_filters_by_area_and_machine(report: Visit) -> None:
    page = report.open("report.html")
    page.locator(".matrix tbody tr", has_text="server").locator("td a").last.click()
    assert page.url.endswith("?area=none+policy&machine=server")
    assert page.locator("#shown").inner_text() == "1 of 41 failures, 1 of 41 cases"


def test_commands_and_issues_are_copied(report: Visit) -> None:
    page = report.open("report.html")
    page.locator(".first").get_by_text("Copy command").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "numaproof check --select static.exclusive --machine desktop"
    page.locator(".card").first.get_by_text("Copy Markdown for an issue").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("**CPUs 2-3 are lost**")


def test_the_focus_is_visible_below_the_sticky_search(report: Visit) -> None:
    page = report.open("report.html")
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    covered = """() => {
      const bar = document.getElementById("filter").getBoundingClientRect();
      const at = document.activeElement.getBoundingClientRect();
      const inside = document.activeElement.closest("#filter");
      return !inside && at.height > 0 && at.top < bar.bottom && at.bottom > bar.top;
    }"""
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.locator("#run button").focus()
    for key in ("Shift+Tab",) * 60:
        page.keyboard.press(key)
        assert not page.evaluate(covered)


def test_failures_are_readable_without_javascript(browser: Browser, report: Visit) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.address("report.html"))
    page.locator(".card > summary").nth(1).click()
    assert page.locator(".card .message").nth(1).is_visible()
    assert page.locator("#filter").is_hidden()
    context.close()


def test_print_expands_the_cards(report: Visit) -> None:
    page = report.open("report.html")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".card:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".card[open]").count() == 1


def test_a_green_run_of_the_whole_table_fits_on_two_printed_pages(
    browser: Browser, tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    requirements = [
        ReportedRequirement(f"AREA-{number}", f"Topology options {number}", "It works.", "", "")
        for number in range(28)
    ]
    passed = [
        run(
            case=f"case-{machine}", machine=f"xeon-silver-4210-2s-{machine}", requirements=(one.id,)
        )
        for machine in range(55)
        for one in requirements
    ]
    known = [
        run("expected failure", case=f"defect-{number}", defect=f"full-pcpus-only-breaks-{number}")
        for number in range(25)
    ]
    events = stream(*passed, *known, start={"requirements": requirements})
    (tmp_path / "report.html").write_text(html(summarize(events)), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    printed = page.pdf(format="Letter")
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2


def test_nothing_is_cut_off_on_a_narrow_screen(report: Visit) -> None:
    page = report.open("report.html")
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
