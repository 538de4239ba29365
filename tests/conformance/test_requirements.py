"""The registry of requirements, and what the project's own cases make of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading, naming, releases
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import (
    Registry,
    Requirement,
    SourceDocument,
    load_registry,
    problems,
)
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.defects import DEFECTS

MakeCase = Callable[[str], Case]


def requirement(name: str, **changes: object) -> Requirement:
    made = Requirement(
        id=name,
        area="Area",
        statement="It must.",
        document="doc",
        section="1",
        since=None,
        maturity="stable",
        level="admission",
    )
    return msgspec.structs.replace(made, **changes)


def registry(*rows: Requirement) -> Registry:
    documents = {
        "doc": SourceDocument("Doc", "en", "web"),
        "program": SourceDocument("Program", "en", "web", code=True),
    }
    return Registry(documents, rows)


@pytest.fixture
def case(make_case: MakeCase) -> Callable[..., Case]:
    def make(name: str, *requirements: str, aliases: tuple[str, ...] = ()) -> Case:
        made = make_case("steps: [{state: {}}]")
        return msgspec.structs.replace(made, id=name, requirements=requirements, aliases=aliases)

    return make


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


def test_a_registry_in_order_has_no_problems(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001"), requirement("A-002", untested="not visible"))
    assert problems(rows, [case("a", "A-001")]) == []


def test_a_requirement_has_a_case_at_its_own_level(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001"))
    above = msgspec.structs.replace(case("above", "A-001"), level="kubelet")
    at = msgspec.structs.replace(case("at", "A-001"), level="admission")
    below = msgspec.structs.replace(case("below", "A-001"), level="invariants")
    complaint = "requirement A-001 is of level admission, and all its cases are above that"
    assert problems(rows, [above]) == [complaint]
    assert problems(rows, [above, at]) == problems(rows, [below, above]) == []


@pytest.mark.parametrize(
    ("rows", "named", "complaint"),
    [
        (("A-001", "A-001"), ("A-001",), "requirement id A-001 is used twice"),
        (("A-001",), ("A-001", "A-002"), "case one names the unknown requirement A-002"),
        (("A-001",), (), "case one names no requirement"),
        (
            ("A-001", "A-002"),
            ("A-001",),
            "requirement A-002 has neither a case nor a reason why not",
        ),
    ],
)
def test_what_does_not_fit_together_is_found(
    case: Callable[..., Case], rows: tuple[str, ...], named: tuple[str, ...], complaint: str
) -> None:
    assert complaint in problems(registry(*map(requirement, rows)), [case("one", *named)])


def test_an_untested_requirement_with_a_case_is_found(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001", untested="not visible"))
    found = problems(rows, [case("one", "A-001")])
    assert found == ["requirement A-001 is marked untested but has a case"]


def test_what_is_planned_needs_no_case(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001"), requirement("A-002", maturity="planned", since="1.99"))
    assert problems(rows, [case("a", "A-001")]) == []


def test_a_planned_requirement_with_a_case_is_found(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001", maturity="planned", since="1.99"))
    found = problems(rows, [case("one", "A-001")])
    assert found == ["requirement A-001 is marked planned but has a case"]


@pytest.mark.parametrize("since", [None, RELEASES[-1]])
def test_what_is_planned_for_no_release_to_come_is_found(since: str | None) -> None:
    rows = registry(requirement("A-001", maturity="planned", since=since))
    (found,) = problems(rows, [])
    assert found == (
        f"requirement A-001 is planned, and must name a release after {RELEASES[-1]} as its first,"
        f" not {since}"
    )


def test_an_unknown_document_is_found(case: Callable[..., Case]) -> None:
    rows = registry(requirement("A-001", document="lost", also=("gone", "doc")))
    assert problems(rows, [case("one", "A-001")]) == [
        "requirement A-001 cites the unknown document lost",
        "requirement A-001 cites the unknown document gone",
    ]


@pytest.mark.parametrize(
    "section",
    [
        "pkg/kubelet/cm/cpumanager/cpu_manager.go, NewManager, v1.36.3",
        "pkg/kubelet/cm/cpumanager/policy_static.go, staticPolicy.Allocate, v1.33.13; #132187",
        "staging/src/k8s.io/api/a_b.go, F, v0.56.2; cmd/kubelet/app/server.go, run, v1.36.3",
    ],
)
def test_source_code_is_cited_by_file_function_and_tag(
    case: Callable[..., Case], section: str
) -> None:
    rows = registry(requirement("A-001", document="program", section=section))
    assert problems(rows, [case("one", "A-001")]) == []


@pytest.mark.parametrize(
    "section",
    [
        "",
        "Reconcile loop",
        "#132187",
        "cpu_manager.go, NewManager",
        "cpu_manager.go, v1.36.3",
        "cpu_manager.go, NewManager, 1.36",
        "cpu_manager.go, (*manager).Start, v1.36.3",
        "Reconcile loop; cpu_manager.go, NewManager, v1.36.3",
    ],
)
def test_a_vague_citation_of_source_code_is_found(case: Callable[..., Case], section: str) -> None:
    rows = registry(requirement("A-001", document="program", section=section))
    assert problems(rows, [case("one", "A-001")]) == [
        f"requirement A-001 must cite program by file, function and tag, not {section!r}"
    ]


def test_ids_of_cases_repeat_neither_each_other_nor_an_alias(case: Callable[..., Case]) -> None:
    cases = [case("one", "A-001", aliases=("two",)), case("two", "A-001")]
    assert problems(registry(requirement("A-001")), cases) == ["case id two is used twice"]


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
