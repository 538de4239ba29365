"""The board's filters in the address, opening of cells, and printing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from builders.boards import CELL, FOUND, Visit

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.commands

UNTESTED = "CPU-STATIC-005/pinner"
HOSTILE = (
    "?",
    "?=",
    "?%E0%A4%A",
    "?&&&==%00",
    "?outcome=%3Cimg%20src=x%20onerror=alert(1)%3E&area=-1&document=[object%20Object]",
    "?implementation=__proto__&outcome=constructor&kind=toString&submit=1",
    "?__proto__",
    "?implementation=nobody",
    "?outcome=s2",
)


def query(page: Page) -> str:
    found: str = page.evaluate("location.search.slice(1)")
    return found


def rows(page: Page) -> int:
    return page.locator("#matrix tbody tr:not(.area):visible").count()


def set_filters(page: Page) -> dict[str, str]:
    """Returns the values of the filter's non-empty fields."""
    found: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.getElementById('filter').elements]"
        ".filter((one) => one.name && one.value && (one.type !== 'checkbox' || one.checked))"
        ".map((one) => [one.name, one.value]))"
    )
    return found


def test_a_filter_is_readable_in_the_address(visit: Visit) -> None:
    page = visit.open("matrix.html")
    before = page.evaluate("history.length")
    page.fill("[name=text]", "half a & b=c")
    assert query(page) == "text=half+a+%26+b%3Dc"
    page.fill("[name=text]", "exactly")
    page.select_option("[name=area]", label="Static policy")
    page.select_option("[name=document]", "managers-uk")
    page.select_option("[name=outcome]", label="! finding")
    page.select_option("[name=implementation]", label="pinner")
    assert query(page) == (
        "text=exactly&area=Static+policy&document=managers-uk&outcome=finding&implementation=pinner"
    )
    assert rows(page) == 1
    page.click("[type=reset]")
    page.wait_for_url(lambda address: "?" not in address)
    assert page.evaluate("history.length") == before


def test_a_filtered_table_survives_reload_and_back(visit: Visit) -> None:
    page = visit.open("matrix.html")
    page.fill("[name=text]", "static")
    page.select_option("[name=outcome]", label="! finding")
    filtered = {"text": "static", "outcome": "finding"}
    page.reload()
    assert (set_filters(page), rows(page)) == (filtered, 1)
    page.click("nav >> text=Findings")
    page.wait_for_url("**/findings.html")
    page.go_back()
    page.wait_for_url(lambda address: "matrix.html?" in address)
    assert (set_filters(page), rows(page)) == (filtered, 1)


def test_back_restores_the_filter(visit: Visit) -> None:
    page = visit.open("matrix.html?text=cpu-static")
    visit.cell(CELL).click()
    page.wait_for_selector("#details:visible")
    page.fill("[name=text]", "cpu-static-002")
    assert query(page) == "text=cpu-static-002"
    assert page.url.endswith(f"#{CELL}")
    page.go_back()
    page.wait_for_url(lambda address: "#" not in address)
    assert set_filters(page) == {"text": "cpu-static"}
    assert rows(page) > 1


def test_links_to_cells_keep_the_filter(visit: Visit) -> None:
    page = visit.open("matrix.html?implementation=pinner&outcome=finding")
    visit.cell(CELL).click()
    page.wait_for_selector("#details:visible")
    assert page.url.endswith(f"?implementation=pinner&outcome=finding#{CELL}")
    page.keyboard.press("Escape")
    assert page.url.endswith("?implementation=pinner&outcome=finding")
    assert set_filters(page) == {"implementation": "pinner", "outcome": "finding"}


@pytest.mark.parametrize("old", ["pinner", "pinner=", "pinner&utm_source=mail"])
def test_an_implementation_alone_is_a_query(visit: Visit, old: str) -> None:
    for name in ("matrix.html", "findings.html"):
        assert set_filters(visit.open(f"{name}?{old}")) == {"implementation": "pinner"}


def test_an_implementation_can_be_selected_by_name(visit: Visit) -> None:
    name = "a rather long name of a reader 3"
    short = {"implementation": name.replace(" ", "-")}
    for page in ("matrix.html", "findings.html"):
        for asked in (name.replace(" ", "+"), name.replace(" ", "%20"), short["implementation"]):
            assert set_filters(visit.open(f"{page}?implementation={asked}")) == short


def test_findings_and_machines_keep_their_filters(visit: Visit) -> None:
    page = visit.open("findings.html?kind=own+rules&text=offline")
    assert set_filters(page) == {"kind": "own rules", "text": "offline"}
    page.select_option("[name=kind]", label="! finding")
    page.fill("[name=text]", "")
    assert query(page) == "kind=finding"
    assert page.locator(".card:visible").count() == 1
    page = visit.open("machines.html?outcome=own+rules")
    assert rows(page) == 1
    page.select_option("[name=outcome]", label="✓ agrees")
    assert query(page) == "outcome=pass"


@pytest.mark.parametrize("address_query", [*HOSTILE, "?text=" + "%F0%9F%98%80x" * 3000])
def test_an_empty_query_filters_nothing(visit: Visit, address_query: str) -> None:
    for name in ("matrix.html", "findings.html", "machines.html"):
        page = visit.open(name + address_query)
        shown = set_filters(page)
        assert shown.keys() <= {"text"}
        assert len(shown.get("text", "")) <= 200
        page.fill("[name=text]", "7")
        assert query(page) == "text=7", name
        assert page.locator("img").count() == 0


def test_a_link_to_a_cell_that_the_query_hides_shows_it(visit: Visit) -> None:
    page = visit.open(f"matrix.html?text=no+such+words&outcome=crash#{CELL}")
    assert visit.cell(CELL).is_visible()
    assert FOUND in page.locator("#details").inner_text()
    page.wait_for_url(lambda address: "?" not in address)
    assert page.url.endswith(f"#{CELL}")
    assert set_filters(page) == {}


def test_an_untested_cell_is_labelled(visit: Visit) -> None:
    page = visit.open(f"matrix.html#{CELL}")
    for how in ("click", "Enter", "link"):
        if how == "click":
            visit.cell(UNTESTED).click()
        elif how == "Enter":
            visit.cell("CPU-STATIC-004/pinner").locator("a").focus()
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
        else:
            page = visit.open(f"matrix.html#{UNTESTED}")
        page.wait_for_selector(f"td.here[id='{UNTESTED}']")
        told = page.locator("#details").inner_text()
        for said in ("CPU-STATIC-005", "untested", "not covered by any case in the run"):
            assert said in told
        assert FOUND not in told
        assert page.locator("td.here").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("#details").is_hidden()


def test_following_another_link_closes_the_details(visit: Visit) -> None:
    page = visit.open(f"matrix.html#{CELL}")
    page.evaluate("location.hash = 'CPU-STATIC-003'")
    page.wait_for_selector("#details", state="hidden")
    assert page.locator("td.here").count() == 0


A4 = 1047
"""The width of an A4 page in landscape without margins, in CSS pixels."""

WIDE = (
    "index.html",
    "matrix.html",
    "machines.html",
    "implementations/pinner.html",
    "requirements/cpu-static-002.html",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tables_fit_on_a_printed_page(browser: Browser, site: Path, scheme: str) -> None:
    visit = Visit(browser, site, viewport={"width": A4, "height": 718})
    for name in WIDE:
        page = visit.open(name)
        page.emulate_media(media="print", color_scheme=scheme)
        wide = page.locator("table").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().right)"
        )
        assert wide, name
        assert max(wide) <= A4, name
        hidden = page.locator(".scroll, thead th, tbody th").evaluate_all(
            """(all) => all.map((one) => getComputedStyle(one))
              .filter((one) => one.position === "sticky" || one.overflowX === "auto"
                || one.maxHeight !== "none").length"""
        )
        assert hidden == 0, name
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
            "rgb(255, 255, 255)",
            "rgba(0, 0, 0, 0)",
        )
        printed = page.pdf(prefer_css_page_size=True)
        boxes = {tuple(map(float, one)) for one in re.findall(BOX, printed)}
        assert boxes, name
        assert all(width > height for width, height in boxes), name
    visit.context.close()


BOX = rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]"


def test_open_findings_are_printed_in_full(visit: Visit) -> None:
    page = visit.open("findings.html")
    page.locator(".card > summary").nth(1).click()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".card[open]").count() == 1
    page.emulate_media(media="print")
    heights = page.locator("pre").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one).maxHeight)"
    )
    assert set(heights) == {"none"}


def test_the_overview_and_the_table_count_the_same_requirements(visit: Visit) -> None:
    counted = visit.open("matrix.html").locator("#shown").inner_text().split()[1]
    lead = visit.open("index.html").locator(".lead").first.inner_text()
    assert f"checked against {counted} documented requirements" in lead


def test_only_asked_requirements_and_implementations_are_shown(visit: Visit) -> None:
    page = visit.open("matrix.html")
    every = rows(page)
    page.select_option("[name=columns]", "discoverers")
    page.check("[name=asked]")
    assert query(page) == "columns=discoverers&asked=only"
    # Of all requirements, the readers were tested only for one.
    assert (every > rows(page), rows(page)) == (True, 1)
    assert page.locator("#matrix .kinds th:visible").inner_text() == "Discoverers"
    page.select_option("[name=columns]", "")
    page.fill("[name=text]", "discovery-002")
    assert page.locator("#matrix thead [data-i=pinner]").is_hidden()
    page.reload()
    assert page.is_checked("[name=asked]")
    assert set_filters(page) == {"text": "discovery-002", "asked": "only"}


def test_the_most_broken_requirements_come_first(visit: Visit) -> None:
    page = visit.open("matrix.html?order=broken")
    first = page.locator("#matrix tbody tr:not(.area)").first
    assert first.get_attribute("id") == "DISCOVERY-002"  # all 16 readers follow their own rules
    page.select_option("[name=order]", "")
    assert first.get_attribute("id") != "DISCOVERY-002"


def test_lists_are_sorted_by_a_column_that_the_address_keeps(visit: Visit) -> None:
    page = visit.open("index.html")
    names = page.locator("#discoverers + .scroll tbody th > a:first-child")
    before = names.all_inner_texts()
    heads = page.locator("#discoverers + .scroll thead")
    heads.get_by_role("button", name="Implementation").click()
    assert names.all_inner_texts()[2] == "a rather long name of a reader 2"  # 2 before 10
    assert query(page) == "sort=Implementation"
    heads.get_by_role("button", name="Implementation").press("Enter")
    assert names.all_inner_texts()[0] == "a rather long name of a reader 15"
    assert heads.locator("[aria-sort=descending]").count() == 1
    page.reload()
    assert names.all_inner_texts()[0] == "a rather long name of a reader 15"
    visit.open("index.html?sort=__proto__")
    assert names.all_inner_texts() == before


def test_the_panel_shows_all_versions_and_leads_to_the_requirement(visit: Visit) -> None:
    page = visit.open("matrix.html#CPU-STATIC-001/pinner")
    versions = page.locator("#details .versions li")
    assert [text.split()[:2] for text in versions.all_inner_texts()] == [["✗", "1.0"], ["✓", "1.1"]]
    assert "date unknown" in (versions.first.locator(".state").get_attribute("title") or "")
    page.get_by_role("link", name="Who meets it, since which version").click()
    page.wait_for_url("**/requirements/cpu-static-001.html#history")
    said = page.locator("main").inner_text()
    assert "1 met of 1 implementation tested" in said
    assert "before: not met in 1.0" in said


def test_the_overview_finds_requirements(visit: Visit) -> None:
    page = visit.open("index.html")
    page.fill("[name=text]", "exactly")
    page.keyboard.press("Enter")
    page.wait_for_url("**/matrix.html?text=exactly")
    assert set_filters(page) == {"text": "exactly"}


def test_a_finding_is_copied(visit: Visit) -> None:
    page = visit.open("findings.html")
    card = page.locator("details.card:has(.command)").first
    card.locator("summary").first.click()
    for name in ("Copy link", "Copy command"):
        card.get_by_role("button", name=name).click()
        card.locator("[data-copied=Copied]", has_text=name).wait_for()
