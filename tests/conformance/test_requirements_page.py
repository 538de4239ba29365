"""docs/requirements.md is what its script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_its_script_writes() -> None:
    written = (DOCS / "requirements.md").read_text("utf-8")
    script = runpy.run_path(str(DOCS / "requirements" / "page.py"), run_name="requirements_page")
    assert script["page"]() == written, "python docs/requirements/page.py > docs/requirements.md"
