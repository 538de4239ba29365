"""The pages about requirements match their script."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_match_their_script() -> None:
    script = runpy.run_path(str(DOCS / "requirements" / "page.py"), run_name="requirements_page")
    pages = script["pages"]()
    names = [f"requirements/{path.name}" for path in (DOCS / "requirements").glob("*.md")]
    written = {name: (DOCS / name).read_text("utf-8") for name in ("requirements.md", *names)}
    assert written == pages, "python docs/requirements/page.py"
