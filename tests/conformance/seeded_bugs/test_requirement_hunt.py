"""Requirements and those who break them: each is caught by a case that cites it, at its level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as with_fields

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.seeded_bugs import requirement_hunt
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.hunting import Suite
from numaproof.conformance.seeded_bugs.requirement_hunt import RequirementHunt
from numaproof.conformance.seeded_bugs.seeding import Bug
from numaproof.conformance.seeded_bugs.violator_catalogue import VIOLATORS

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.messages import Level

PAIR = ("CPU-RECONCILE-001", "reconcile-tells-nobody")


@pytest.fixture
def hunt(tmp_path: Path) -> RequirementHunt:
    """The cases about reconciling, on one machine."""
    cases = [case for case in loading.bundled_cases() if case.id.startswith("reconcile")]
    machine = ProfileMachine(fakesys.load_profile("core-i7-9700"), tmp_path)
    return RequirementHunt(Suite(cases, [machine], load_registry()), tmp_path / "runs")


def at_level(hunt: RequirementHunt, level: Level) -> RequirementHunt:
    rows = tuple(with_fields(row, level=level) for row in hunt.suite.registry.requirements)
    registry = with_fields(hunt.suite.registry, requirements=rows)
    return RequirementHunt(replace(hunt.suite, registry=registry), hunt.scratch)


def test_a_case_that_cites_the_requirement_catches_its_violator(hunt: RequirementHunt) -> None:
    proof = hunt.proof(PAIR)
    assert proof.catch is not None
    assert proof.catch.case.startswith("reconcile-")
    assert (proof.level, proof.catch.machine) == ("placement", "core-i7-9700")


def test_cases_of_other_requirements_do_not_count(hunt: RequirementHunt) -> None:
    others = [case for case in hunt.suite.cases if PAIR[0] not in case.requirements]
    proof = RequirementHunt(replace(hunt.suite, cases=others), hunt.scratch).proof(PAIR)
    assert (proof.catch, proof.runs) == (None, 0)


def test_cases_above_the_level_of_the_requirement_do_not_count(hunt: RequirementHunt) -> None:
    proof = at_level(hunt, "invariants").proof(PAIR)
    assert (proof.catch, proof.runs) == (None, 0)


def test_a_violator_that_breaks_the_harness_is_named(
    hunt: RequirementHunt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    bug = Bug("divides-by-zero", "cpus", (PAIR[0],), broken)
    monkeypatch.setattr(requirement_hunt, "VIOLATORS", (bug,))
    with pytest.raises(ZeroDivisionError) as caught:
        hunt.proof((PAIR[0], bug.id))
    assert "the violator divides-by-zero broke the harness" in caught.value.__notes__[0]


def test_every_tested_requirement_has_a_violator() -> None:
    assert requirement_hunt.without_violator(load_registry()) == ()


def test_ids_of_violators_are_those_of_no_other_bug() -> None:
    ids = [bug.id for bug in (*BUGS, *VIOLATORS)]
    assert len(ids) == len(set(ids))


def test_a_violator_breaks_one_tested_requirement_and_says_how() -> None:
    rows = load_registry().by_id()
    for bug in VIOLATORS:
        (requirement,) = bug.models
        assert rows[requirement].tested, bug.id
        assert bug.seed.__doc__, bug.id
