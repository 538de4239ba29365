"""docs/requirements.md is what its script writes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.conformance.requirements import load_registry
from numaproof.conformance.traceability import Sentence, TracedDocument, traced_documents

if TYPE_CHECKING:
    from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = (DOCS / "requirements.md").read_text("utf-8")

SENTENCES = (
    Sentence("1", "It does.", rows=("CPU-NONE-001",)),
    Sentence("2", "It does.", rows=("CPU-NONE-001",), missing="It does more."),
    Sentence("3", "Heading.", why="A heading."),
    Sentence("4-5", "It does.", missing="It must do."),
)


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


def test_every_sentence_and_every_requirement_has_a_row() -> None:
    rows = [line for line in WRITTEN.splitlines() if line.startswith("| ")]
    sentences = [one for document in traced_documents() for one in document.sentences]
    assert len([row for row in rows if row[2].isdigit()]) == len(sentences)
    assert len([row for row in rows if row.startswith('| <a id="')]) == len(
        load_registry().requirements
    )


def test_sentences_are_counted_by_what_carries_them(script: Any) -> None:
    table = script.counts([TracedDocument("topology-uk", SENTENCES)])
    assert table.splitlines()[-1] == "| all | 4 | 1 | 1 | 1 | 1 |"


def test_a_sentence_shows_its_requirements_or_the_reason_and_what_is_missing(script: Any) -> None:
    section = script.of_document(TracedDocument("topology-uk", SENTENCES))
    assert section.splitlines()[-4:] == [
        "| 1 | It does. | [CPU-NONE-001](#cpu-none-001) |  |",
        "| 2 | It does. | [CPU-NONE-001](#cpu-none-001) | It does more. |",
        "| 3 | Heading. | A heading. |  |",
        "| 4-5 | It does. |  | It must do. |",
    ]


def test_text_in_a_cell_is_no_markup(script: Any) -> None:
    assert script.cell("a | b\n<c> *d* [e](f)") == r"a \| b \<c> \*d\* \[e\](f)"
