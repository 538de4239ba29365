"""The registry of requirements, its documents, and the project's own cases.

`requirements.yaml` has small registries and their inconsistencies.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.checkout import SHARED
from builders.tables import Table
from builders.targets import case_of
from numaproof.conformance.cases import loading, naming, releases
from numaproof.conformance.execution import machines
from numaproof.conformance.requirements import (
    Registry,
    Requirement,
    Sentence,
    SourceDocument,
    TracedDocument,
    load_registry,
    problems,
    trace_problems,
    traced_documents,
)
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from numaproof.conformance.execution.machines import ProfileMachine

REGISTRIES = Table(__file__, "requirements.yaml")
PLAIN = {
    "area": "Area",
    "statement": "It must.",
    "document": "doc",
    "section": "1",
    "since": None,
    "maturity": "stable",
    "level": "admission",
}
DOCUMENTS = {
    "doc": SourceDocument("Doc", "en", "web"),
    "program": SourceDocument("Program", "en", "web", code=True),
}


@REGISTRIES
def test_inconsistencies_are_found(row: dict[str, Any]) -> None:
    made = case_of("steps: [{state: {}}]")
    registry = Registry(
        DOCUMENTS,
        tuple(msgspec.convert({**PLAIN, **one}, Requirement) for one in row["requirements"]),
    )
    if "sentences" in row:
        sentences = msgspec.convert(row["sentences"], tuple[Sentence, ...])
        traced = [TracedDocument(row["document"], sentences)]
        REGISTRIES.check(row, list(trace_problems(traced, registry)))
        return
    cases = [msgspec.structs.replace(made, **one) for one in row["cases"]]
    REGISTRIES.check(row, problems(registry, cases))


def test_every_requirement_has_a_case_or_a_reason_why_not() -> None:
    assert problems(load_registry(), loading.bundled_cases()) == []


def test_every_statement_is_one_sentence_with_one_must_in_it() -> None:
    modal = re.compile(r"\b(must|should|may|need not)\b")
    assert [
        row.id
        for row in load_registry().requirements
        if len(modal.findall(row.statement)) != 1
        or not row.statement.endswith(".")
        or ". " in row.statement
    ] == []


# The project's cases


def test_ids_are_unique_and_in_kebab_case() -> None:
    names = [name for case in loading.bundled_cases() for name in (case.id, *case.aliases)]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_every_area_has_an_id_prefix() -> None:
    assert {row.area for row in load_registry().requirements} == set(naming.PREFIXES)


def test_ids_begin_with_the_area_of_the_first_requirement() -> None:
    areas = {row.id: row.area for row in load_registry().requirements}
    assert [
        (case.id, areas[case.requirements[0]])
        for case in loading.bundled_cases()
        if not naming.begins_with(areas[case.requirements[0]], case.id)
    ] == []


def test_every_case_has_steps_and_a_unique_title() -> None:
    cases = loading.bundled_cases()
    assert [case.id for case in cases if not case.steps or not case.title] == []
    titles = Counter(case.title for case in cases)
    assert [title for title, count in titles.items() if count > 1] == []


def test_every_case_applies_to_a_release() -> None:
    assert [
        case.id
        for case in loading.bundled_cases()
        if not any(releases.includes(case.kubernetes, release) for release in RELEASES)
    ] == []


def test_every_defect_in_a_case_is_in_the_release_table() -> None:
    known = {defect.name for defect in DEFECTS} | {None}
    assert [case.id for case in loading.bundled_cases() if case.defect not in known] == []


def test_every_case_runs_on_a_bundled_machine(catalogue: list[ProfileMachine]) -> None:
    assert [
        case.id
        for case in loading.bundled_cases()
        if case.machine is None and not machines.select(catalogue, case)
    ] == []


# The project's documents, sentence by sentence


TEXTS = SHARED / "documents"
FILES = {
    "managers-zh": "000_6496539371af2dfc.txt",
    "managers-uk": "001_40c9bf00dde00a6c.txt",
    "cpu-policies-1.8-zh": "002_6b23d4bdefb4435f.txt",
    "topology-uk": "003_7b6e57b9e44b91a6.txt",
    "article-zh": "004_82e66182756eb0f7.txt",
}


@pytest.mark.parametrize(("lines", "span"), [("7", range(7, 8)), ("7-9", range(7, 10))])
def test_a_sentence_has_line_numbers(lines: str, span: range) -> None:
    assert Sentence(lines, "It does.").span == span


def test_the_sentences_and_the_registry_agree() -> None:
    assert list(trace_problems(traced_documents(), load_registry())) == []


def test_all_five_documents_are_traced() -> None:
    assert {one.document for one in traced_documents()} == FILES.keys()


def test_sentences_are_ordered_and_have_requirements_or_reasons() -> None:
    for document in traced_documents():
        starts = [sentence.span.start for sentence in document.sentences]
        assert starts == sorted(starts), document.document
        both = [one.lines for one in document.sentences if one.why and (one.rows or one.missing)]
        assert both == [], document.document


@pytest.mark.skipif(
    not TEXTS.is_dir(), reason=f"no documents in {TEXTS}; NUMAPROOF_SHARED names another"
)
@pytest.mark.parametrize("document", traced_documents(), ids=lambda document: document.document)
def test_every_line_of_a_document_belongs_to_a_sentence(document: TracedDocument) -> None:
    text = (TEXTS / FILES[document.document]).read_text("utf-8")
    lines = dict(enumerate(text.split("\n"), start=1))
    covered = {number for sentence in document.sentences for number in sentence.span}
    assert {number for number, line in lines.items() if line.strip()} - covered == set()
    assert covered - lines.keys() == set()
