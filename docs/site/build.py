"""Builds the documentation site: docs/, the adapters' READMEs, all commands' help, and a board.

    python docs/site/build.py FOLDER

Links are rewritten to point to the site's pages, and linked files from the repository are included.
A broken link fails the build: the generator checks links to pages and anchors; `check_links` checks
links to files.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from commands import command_reference

HERE = Path(__file__).parent
DOCS = HERE.parent
ROOT = DOCS.parent
BOARD = DOCS / "board"
"""Board data; on the site, the board itself."""

_SHIM = re.compile(r'<script src="https://unpkg.com/iframe-worker/shim"')
_WORKER = "local-worker.js"
_OURS = ("accessible.css", "accessible.js")
_TARGET = re.compile(r"""<[a-z][^>]*\b(?:src|href)=["']?(?![a-z]+:|#)([^"'\s>]+)""")
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)")


def place(path: Path) -> Path:
    """Returns the location on the site of a file in the repository. docs/ is the root."""
    return path.relative_to(DOCS) if path.is_relative_to(DOCS) else path.relative_to(ROOT)


def assemble(pages: Path) -> None:
    """Copies all pages and linked files into a folder."""
    waiting = [*DOCS.glob("*.md"), *DOCS.glob("coverage/*.md")]
    done: set[Path] = set()
    while waiting:
        source = waiting.pop().resolve()
        if source in done:
            continue
        done.add(source)
        target = pages / place(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text("utf-8")
            waiting += [
                one for link in _LINK.findall(text) if (one := source.parent / link).is_file()
            ]
            target.write_text(_LINK.sub(partial(_relocate_link, source), text), "utf-8")
        else:
            shutil.copyfile(source, target)
    (pages / "assets").mkdir()
    for name in _OURS:
        shutil.copyfile(HERE / name, pages / "assets" / name)
    (pages / "commands.md").write_text(command_reference(), "utf-8")
    program = Path(sys.executable).with_name("numaproof")
    subprocess.run([program, "board", BOARD, "--out", pages / place(BOARD)], check=True)  # noqa: S603 - our own command


def _relocate_link(page: Path, link: re.Match[str]) -> str:
    linked = Path(os.path.normpath(page.parent / link[1]))
    there = place(linked) / "index.html" if linked == BOARD else place(linked)
    return os.path.relpath(there, place(page).parent)


def build(folder: Path) -> None:
    """Builds the site in `folder` / site from the pages assembled in `folder` / pages."""
    for made in ("pages", "site"):
        shutil.rmtree(folder / made, ignore_errors=True)
    assemble(folder / "pages")
    shutil.copyfile(HERE / "zensical.toml", folder / "zensical.toml")
    program = Path(sys.executable).with_name("zensical")
    subprocess.run([program, "build", "--strict"], cwd=folder, check=True)  # noqa: S603 - our own generator
    _without_other_hosts(folder / "site")
    check_links(folder / "site")


def _without_other_hosts(site: Path) -> None:
    """Replaces the only script that pages would load from another host with our own."""
    shutil.copyfile(HERE / _WORKER, site / "assets" / _WORKER)
    for page in site.rglob("*.html"):
        ours = os.path.relpath(site / "assets" / _WORKER, page.parent)
        page.write_text(_SHIM.sub(f'<script src="{ours}"', page.read_text("utf-8")), "utf-8")


def check_links(site: Path) -> None:
    """Checks that every link on a page leads to a file on the site; `/` is the site's folder.

    Raises:
        SystemExit: some don't.
    """
    files = {one.relative_to(site).as_posix() for one in site.rglob("*") if one.is_file()}
    broken = set()
    for page in sorted(one for one in files if one.endswith(".html")):
        for link in _TARGET.findall((site / page).read_text("utf-8")):
            target = unquote(html.unescape(link)).partition("#")[0].partition("?")[0]
            there = os.path.normpath(Path("/", page).parent / target)[1:]
            if target and there not in files:
                broken.add(f"{page}: {target}")
    if broken:
        raise SystemExit("\n".join(["broken links:", *sorted(broken)]))


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
