"""The registry of requirements, its documents, and what the project's own cases make of it.

`requirements.yaml` has small registries, and what does not fit together in them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from builders.tables import Table
from numaproof import fakesys
from numaproof.conformance import requirements
from numaproof.conformance.cases import loading, naming, releases
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import (
    Registry,
    Requirement,
    Sentence,
    SourceDocument,
    TracedDocument,
    load_registry,
    problems,
)
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.defects import DEFECTS

MakeCase = Callable[[str], Case]


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
def test_what_does_not_fit_together_is_found(row: dict[str, Any], make_case: MakeCase) -> None:
    made = make_case("steps: [{state: {}}]")
    registry = Registry(
        DOCUMENTS,
        tuple(msgspec.convert({**PLAIN, **one}, Requirement) for one in row["requirements"]),
    )
    if "sentences" in row:
        sentences = msgspec.convert(row["sentences"], tuple[Sentence, ...])
        traced = [TracedDocument(row["document"], sentences)]
        REGISTRIES.check(row, list(requirements.untraced(traced, registry)))
        return
    cases = [msgspec.structs.replace(made, **one) for one in row["cases"]]
    REGISTRIES.check(row, problems(registry, cases))


def test_every_requirement_has_a_case_or_a_reason_why_not() -> None:
    assert problems(load_registry(), loading.bundled_cases()) == []


def test_every_statement_is_one_sentence_with_one_must() -> None:
    modal = re.compile(r"\b(must|should|may|need not)\b")
    assert [
        row.id
        for row in load_registry().requirements
        if len(modal.findall(row.statement)) != 1
        or not row.statement.endswith(".")
        or ". " in row.statement
    ] == []


# The project's own cases


def test_ids_are_unique_and_in_kebab_case() -> None:
    names = [name for case in loading.bundled_cases() for name in (case.id, *case.aliases)]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_every_area_has_its_beginning_of_ids() -> None:
    assert {row.area for row in load_registry().requirements} == set(naming.PREFIXES)


def test_ids_begin_with_the_area_of_the_first_requirement() -> None:
    areas = {row.id: row.area for row in load_registry().requirements}
    assert [
        (case.id, areas[case.requirements[0]])
        for case in loading.bundled_cases()
        if not naming.begins_with(areas[case.requirements[0]], case.id)
    ] == []


def test_every_case_has_steps_and_a_title_of_its_own() -> None:
    cases = loading.bundled_cases()
    assert [case.id for case in cases if not case.steps or not case.title] == []
    titles = Counter(case.title for case in cases)
    assert [title for title, count in titles.items() if count > 1] == []


def test_every_case_is_for_some_release() -> None:
    assert [
        case.id
        for case in loading.bundled_cases()
        if not any(releases.includes(case.kubernetes, release) for release in RELEASES)
    ] == []


def test_every_defect_that_a_case_names_is_in_the_release_table() -> None:
    known = {defect.name for defect in DEFECTS} | {None}
    assert [case.id for case in loading.bundled_cases() if case.defect not in known] == []


def test_every_case_runs_on_a_bundled_machine() -> None:
    names = fakesys.bundled_profiles()
    catalogue = [ProfileMachine(fakesys.load_profile(name), Path("/nonexistent")) for name in names]
    homeless = [
        case.id
        for case in loading.bundled_cases()
        if case.machine is None and not machines.select(catalogue, case)
    ]
    assert homeless == []
