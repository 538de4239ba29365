"""docs/requirements.md is what its script writes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = (DOCS / "requirements.md").read_text("utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the page, as a module."""
    spec = importlib.util.spec_from_file_location(
        "requirements_page", DOCS / "requirements" / "page.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules["requirements_page"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_its_script_writes(script: Any) -> None:
    assert script.page() == WRITTEN, "python docs/requirements/page.py > docs/requirements.md"
