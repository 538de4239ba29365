"""The board's pages in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from builders.boards import CELL, FOUND, Visit
from numaproof.conformance.requirements import load_registry

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.commands

PAGES = (
    "index.html",
    "matrix.html",
    "findings.html",
    "machines.html",
    "defects.html",
    "implementations/pinner.html",
    "requirements/cpu-static-002.html",
)


def focused_id(page: Page) -> str:
    """Returns the id of the cell, or the name of the field, with the focus."""
    found: str = page.evaluate(
        "(document.activeElement.closest('td') || {}).id || document.activeElement.name || ''"
    )
    return found


SHOWN = """count => {
  const rows = [...document.querySelectorAll("#matrix tbody tr:not(.area)")];
  return rows.filter((row) => row.offsetParent).length === count;
}"""
"""A script that checks how many rows the table shows."""


def rows(page: Page) -> int:
    return page.locator("#matrix tbody tr:not(.area):visible").count()


def reset(page: Page, every: int) -> None:
    """Clears the filters. The page shows all rows again a moment after the click."""
    page.click("[type=reset]")
    page.wait_for_function(SHOWN, arg=every)


def test_pages_only_load_their_own_files(visit: Visit) -> None:
    for name in PAGES:
        assert "numaproof board" in visit.open(name).title()
    assert len(visit.requested_urls) > len(PAGES)
    assert [one for one in visit.requested_urls if not one.startswith(visit.site.as_uri())] == []


def test_every_link_works(site: Path) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    checked = 0
    for path, text in pages.items():
        for target in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            if target.startswith("https://"):
                continue
            file, _, fragment = target.partition("#")
            there = (path.parent / file.partition("?")[0]).resolve() if file else path
            assert there.exists(), target
            assert not fragment or unquote(fragment) in ids[there], f"{path.name}: {target}"
            checked += 1
    assert checked > 500


def test_the_table_is_filtered_by_words_area_outcome_and_implementation(visit: Visit) -> None:
    page = visit.open("matrix.html")
    every = rows(page)
    page.fill("[name=text]", "cpu-static exactly as many")
    assert 0 < rows(page) < 5
    assert "of" in page.locator("#shown").inner_text()
    reset(page, every)
    page.select_option("[name=area]", label="Static policy")
    assert page.locator("#matrix tbody:visible").count() == 1
    page.select_option("[name=outcome]", label="! finding")
    assert rows(page) == 1
    reset(page, every)
    page.select_option("[name=implementation]", label="pinner")
    assert page.locator("#matrix thead th[scope=col]:visible").count() == 2
    assert page.locator("#matrix thead th[scope=colgroup]:visible").inner_text() == "Allocators"
    page.select_option("[name=outcome]", label="◇ own rules")
    assert rows(page) == 0
    assert page.locator("#nothing").is_visible()


def test_the_overview_links_to_columns_of_the_table(visit: Visit) -> None:
    page = visit.open("index.html")
    page.click("a[href='matrix.html?implementation=pinner']")
    page.wait_for_load_state()
    assert page.input_value("[name=implementation]") == "pinner"


def test_findings_are_filtered_by_kind(visit: Visit) -> None:
    page = visit.open("findings.html")
    every = page.locator(".card:visible").count()
    page.select_option("[name=kind]", label="! finding")
    assert page.locator(".card:visible").count() == 1 < every
    page.click(".card:visible > summary")
    shown = page.locator(".card[open]").inner_text()
    for said in (FOUND, "admit: cpus differs", "numaproof replay static-whole", "- id: static"):
        assert said in shown


@pytest.mark.parametrize("width", [1400, 400])
def test_a_link_to_a_cell_shows_it_and_survives_a_reload(
    browser: Browser, site: Path, width: int
) -> None:
    visit = Visit(browser, site, viewport={"width": width, "height": 850})
    page = visit.open(f"matrix.html#{CELL}")
    for _ in range(2):
        panel = page.locator("#details").inner_text()
        statement = next(
            one.statement for one in load_registry().requirements if one.id == "CPU-STATIC-002"
        )
        for said in (statement, FOUND, "static-whole", "dgx-spark-gb10, laptop-4c8t", "cpus diff"):
            assert said in panel
        # The cell is visible, not behind the sticky headers.
        top = page.evaluate(
            """name => {
              const box = document.getElementById(name).getBoundingClientRect();
              const at = [box.x + box.width / 2, box.y + box.height / 2];
              return document.elementFromPoint(...at)?.closest("td")?.id;
            }""",
            CELL,
        )
        assert top == CELL
        assert "here" in (visit.cell(CELL).get_attribute("class") or "")
        page.reload()
    assert visit.complaints == []
    visit.context.close()


def test_details_appear_next_to_their_cell(browser: Browser, site: Path) -> None:
    visit = Visit(browser, site, viewport={"width": 1280, "height": 900})
    last = "CPU-STATIC-002/a-rather-long-name-of-a-reader-9"
    for how in ("link", "click"):
        for name in (CELL, last):
            if how == "link":
                visit.page.goto("about:blank")
                page = visit.open(f"matrix.html#{name}")
            else:
                visit.cell(name).click()
            page.wait_for_selector(f"td.here[id='{name}']")
            panel, cell = page.locator("#details").bounding_box(), visit.cell(name).bounding_box()
            assert panel
            assert cell
            if name == last:
                assert panel["x"] < panel["x"] + panel["width"] <= cell["x"]
            else:
                assert cell["x"] + cell["width"] <= panel["x"]
    visit.context.close()


def test_a_link_to_a_hidden_cell_removes_the_filter(visit: Visit) -> None:
    page = visit.open("matrix.html")
    page.fill("[name=text]", "no such words")
    page.evaluate(f"location.hash = '{CELL}'")
    page.wait_for_selector("#details:visible")
    assert visit.cell(CELL).is_visible()


def test_the_table_works_with_the_keyboard(visit: Visit) -> None:
    page = visit.open("matrix.html")
    # The tab order has one cell, not thousands.
    in_order = page.locator("#matrix td > a:not([tabindex='-1']), #matrix td[tabindex='0']")
    assert in_order.count() == 1
    page.keyboard.press("/")
    assert focused_id(page) == "text"
    page.keyboard.type("cpu-static-00/")
    assert page.input_value("[name=text]") == "cpu-static-00/"
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    assert page.input_value("[name=text]") == "cpu-static-00"
    assert focused_id(page).startswith("CPU-STATIC-001/")
    first = focused_id(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert focused_id(page).startswith("CPU-STATIC-002/")
    assert focused_id(page).partition("/")[2] != first.partition("/")[2]
    while focused_id(page) != CELL:
        before = focused_id(page)
        page.keyboard.press("ArrowLeft")
        assert focused_id(page) != before
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector("#details:visible")
    assert page.evaluate("decodeURIComponent(location.hash)") == f"#{CELL}"
    page.keyboard.press("Escape")
    assert page.locator("#details").is_hidden()
    assert focused_id(page) == CELL
    assert page.evaluate("location.hash") == ""
    assert in_order.count() == 1


def test_machines_are_a_table_of_discovery_results(visit: Visit) -> None:
    page = visit.open("machines.html")
    assert page.locator("#matrix tr.area").inner_text().count("59/60") == 16
    page.fill("[name=text]", "machine-7")
    assert rows(page) == 1
    page.locator("#matrix td.s4 a").first.click()
    assert page.locator(".card[open]").inner_text().count("counts no offline CPUs") >= 1


def test_counts_in_neighbouring_cells_are_separated(visit: Visit) -> None:
    page = visit.open("machines.html")
    paddings = page.locator(".counted tbody td").evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).paddingLeft))"
    )
    assert min(paddings) >= 4


def test_on_a_phone_tables_scroll_instead_of_pages(browser: Browser, site: Path) -> None:
    visit = Visit(browser, site, viewport={"width": 400, "height": 800})
    for name in PAGES:
        page = visit.open(name)
        assert page.evaluate("document.documentElement.scrollWidth") == 400, name
    page = visit.open("matrix.html")
    wide = "getComputedStyle(this).overflowX == 'auto' && this.scrollWidth > this.clientWidth"
    found = page.locator(".scroll").first
    assert found.evaluate(f"(element) => (function () {{ return {wide} }}).call(element)")
    visit.context.close()


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const read = (text) => {
    const [r, g, b, a = 1] = numbers(text);
    return text.startsWith("color(") ? [r, g, b, a] : [r / 255, g / 255, b / 255, a];
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = read(getComputedStyle(one).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [1, 1, 1, 1];
  };
  const low = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.offsetParent || element.closest("svg, .sr, .skip, script")) continue;
    const [a, b] = [light(read(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${element.tagName} ${element.className} ${ratio.toFixed(2)}`);
  }
  return [...low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark_mode(browser: Browser, site: Path, scheme: Any) -> None:
    visit = Visit(browser, site, color_scheme=scheme)
    for name in PAGES:
        page = visit.open(name)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", ground)[0]) < 128) == (scheme == "dark")
        for closed in page.locator("details:not([open]) > summary").all()[:4]:
            closed.click()
        assert page.evaluate(CONTRAST) == [], name
    visit.context.close()


def test_the_pages_are_complete_without_scripts(browser: Browser, site: Path) -> None:
    visit = Visit(browser, site, java_script_enabled=False)
    page = visit.open("matrix.html")
    assert rows(page) == len(load_registry().requirements)
    assert page.locator("#filter").is_hidden()
    assert page.locator(".keys").is_hidden()
    visit.cell(CELL).locator("a").click()
    assert page.url.endswith("implementations/pinner.html#CPU-STATIC-002")
    told = visit.cell("CPU-STATIC-002").inner_text()
    assert FOUND in told
    visit.context.close()


def test_table_headers_have_a_scope(site: Path) -> None:
    for name in PAGES:
        text = (site / name).read_text()
        heads = re.findall(r"<th\b[^>]*>", text)
        assert [head for head in heads if "scope=" not in head] == []
        assert text.count("<table") == text.count("<caption")
        assert len(set(re.findall(r'\bid="([^"]+)"', text))) == len(re.findall(r'\bid="', text))
