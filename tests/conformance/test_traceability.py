"""The sentences of the documents, and the requirements that carry them."""

from __future__ import annotations

import pytest

from builders.checkout import SHARED
from numaproof.conformance.requirements import (
    Registry,
    Requirement,
    SourceDocument,
    load_registry,
)
from numaproof.conformance.traceability import (
    Sentence,
    TracedDocument,
    problems,
    traced_documents,
)

DOCUMENTS = SHARED / "documents"
FILES = {
    "managers-zh": "000_6496539371af2dfc.txt",
    "managers-uk": "001_40c9bf00dde00a6c.txt",
    "cpu-policies-1.8-zh": "002_6b23d4bdefb4435f.txt",
    "topology-uk": "003_7b6e57b9e44b91a6.txt",
    "article-zh": "004_82e66182756eb0f7.txt",
}


def registry(*rows: Requirement) -> Registry:
    return Registry({"doc": SourceDocument("Doc", "en", "web")}, rows)


def requirement(name: str, document: str = "doc", also: tuple[str, ...] = ()) -> Requirement:
    return Requirement(
        id=name,
        area="Area",
        statement="It must.",
        document=document,
        section="1",
        since=None,
        maturity="ga",
        level="admission",
        also=also,
    )


def traced(*sentences: Sentence, document: str = "doc") -> list[TracedDocument]:
    return [TracedDocument(document, sentences)]


CARRIED = Sentence("1", "It does.", rows=("A-001",))


@pytest.mark.parametrize(("lines", "span"), [("7", range(7, 8)), ("7-9", range(7, 10))])
def test_a_sentence_knows_its_lines(lines: str, span: range) -> None:
    assert Sentence(lines, "It does.").span == span


def test_carried_explained_and_open_sentences_are_no_problem() -> None:
    documents = traced(
        CARRIED,
        Sentence("2", "Heading.", why="A heading."),
        Sentence("3", "It does more.", missing="It does more."),
    )
    assert list(problems(documents, registry(requirement("A-001")))) == []


def test_a_requirement_of_another_document_may_name_the_document_in_also() -> None:
    rows = registry(requirement("A-001", document="other", also=("doc",)))
    assert list(problems(traced(CARRIED), rows)) == []


@pytest.mark.parametrize(
    ("sentence", "complaint"),
    [
        (
            Sentence("2-3", "It does."),
            "doc, line 2-3: it has no requirement, no reason, and nothing is missing",
        ),
        (Sentence("2", "It does.", rows=("A-009",)), "doc, line 2: there is no requirement A-009"),
        (
            Sentence("2", "It does.", rows=("A-002",)),
            "doc, line 2: A-002 does not cite the document",
        ),
    ],
)
def test_a_sentence_that_does_not_fit_the_registry_is_found(
    sentence: Sentence, complaint: str
) -> None:
    rows = registry(requirement("A-001"), requirement("A-002", document="other"))
    assert list(problems(traced(CARRIED, sentence), rows)) == [complaint]


@pytest.mark.parametrize(
    "row", [requirement("A-002"), requirement("A-002", document="other", also=("doc",))]
)
def test_a_citation_that_no_sentence_bears_out_is_found(row: Requirement) -> None:
    found = problems(traced(CARRIED), registry(requirement("A-001"), row))
    assert list(found) == ["A-002 cites doc, and no sentence there has it"]


def test_a_document_unknown_to_the_registry_is_found() -> None:
    found = problems(traced(Sentence("1", "Heading.", why="A heading."), document="x"), registry())
    assert list(found) == ["the registry has no document x"]


# The project's own documents


def test_the_sentences_and_the_registry_agree() -> None:
    assert list(problems(traced_documents(), load_registry())) == []


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
