"""The sentences of the documents, and the requirements that carry them."""

from __future__ import annotations

import pytest

from builders.checkout import SHARED
from numaproof.conformance.requirements import (
    Sentence,
    TracedDocument,
    load_registry,
    traced_documents,
    untraced,
)

DOCUMENTS = SHARED / "documents"
FILES = {
    "managers-zh": "000_6496539371af2dfc.txt",
    "managers-uk": "001_40c9bf00dde00a6c.txt",
    "cpu-policies-1.8-zh": "002_6b23d4bdefb4435f.txt",
    "topology-uk": "003_7b6e57b9e44b91a6.txt",
    "article-zh": "004_82e66182756eb0f7.txt",
}


@pytest.mark.parametrize(("lines", "span"), [("7", range(7, 8)), ("7-9", range(7, 10))])
def test_a_sentence_knows_its_lines(lines: str, span: range) -> None:
    assert Sentence(lines, "It does.").span == span


# The project's own documents


def test_the_sentences_and_the_registry_agree() -> None:
    assert list(untraced(traced_documents(), load_registry())) == []


def test_all_five_documents_are_traced() -> None:
    assert {one.document for one in traced_documents()} == FILES.keys()


@pytest.mark.parametrize("document", traced_documents(), ids=lambda one: one.document)
def test_sentences_stand_in_the_order_of_their_lines(document: TracedDocument) -> None:
    starts = [sentence.span.start for sentence in document.sentences]
    assert starts == sorted(starts)


@pytest.mark.parametrize("document", traced_documents(), ids=lambda one: one.document)
def test_no_sentence_has_a_reason_beside_a_requirement(document: TracedDocument) -> None:
    both = [one.lines for one in document.sentences if one.why and (one.rows or one.missing)]
    assert both == []


@pytest.mark.skipif(
    not DOCUMENTS.is_dir(), reason=f"no documents in {DOCUMENTS}; NUMAPROOF_SHARED names another"
)
@pytest.mark.parametrize("document", traced_documents(), ids=lambda one: one.document)
def test_every_line_of_a_document_lies_in_a_sentence(document: TracedDocument) -> None:
    text = (DOCUMENTS / FILES[document.document]).read_text("utf-8")
    lines = dict(enumerate(text.split("\n"), start=1))
    covered = {number for sentence in document.sentences for number in sentence.span}
    assert {number for number, line in lines.items() if line.strip()} - covered == set()
    assert covered - lines.keys() == set()
