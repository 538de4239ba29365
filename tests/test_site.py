"""The documentation site is complete, linked, and loads nothing from other hosts."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from numaproof.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "docs" / "site" / "build.py"
LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?(https?:[^"'\s>]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. The generator fails on a broken link or anchor."""
    pytest.importorskip("zensical", reason="needs zensical")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(BUILD), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder / "site"


@pytest.mark.slow
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    loaded = {url for page in pages for url in LOADED.findall(page.read_text("utf-8"))}
    assert loaded == set()


@pytest.mark.slow
def test_every_command_has_a_section(site: Path) -> None:
    page = (site / "commands.html").read_text("utf-8")
    every = [name for section in COMMANDS.values() for name in section]
    assert [name for name in every if f'id="numaproof-{name}' not in page] == []


@pytest.mark.slow
def test_the_board_is_linked_from_the_pages_about_others(site: Path) -> None:
    assert "numaproof board" in (site / "board/index.html").read_text("utf-8")
    for page in ("index.html", "others.html"):
        assert 'href="board/index.html"' in (site / page).read_text("utf-8")


@pytest.mark.parametrize("link", ["other.html", "/other.html", "../other.html#part"])
def test_a_link_to_no_file_fails_the_build(tmp_path: Path, link: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/page.html").write_text(f'<a class="x" href="{link}">other</a>')
    with pytest.raises(SystemExit, match=r"page\.html: .*other\.html"):
        script().check_links(tmp_path)
    (tmp_path / "other.html").touch()
    (tmp_path / "folder/other.html").touch()
    script().check_links(tmp_path)


def script() -> Any:
    """docs/site/build.py as a module."""
    sys.path.insert(0, str(BUILD.parent))
    try:
        return importlib.import_module("build")
    finally:
        sys.path.remove(str(BUILD.parent))


def test_every_page_is_in_the_navigation() -> None:
    config = (ROOT / "docs" / "site" / "zensical.toml").read_text("utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert sorted(page for page in pages if f'"{page}"' not in config) == []
