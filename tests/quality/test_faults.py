"""The faults themselves: seeded bugs, violators, derived mutants and the list of survivors."""

from __future__ import annotations

import ast
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

import quality
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import messages
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState
from quality import hunters, survivors
from quality.catalogue import BUGS, VIOLATORS, WHOLE_RUN
from quality.derived import Mutant, mutants, rule_function
from quality.seeding import Bug, Changes

EVERY = (*BUGS, *WHOLE_RUN, *VIOLATORS)


def test_every_bug_has_its_own_name_and_says_what_it_is_modelled_on() -> None:
    known = load_registry().by_id()
    ids = Counter(bug.id for bug in EVERY)
    assert [one for one, count in ids.items() if count > 1] == []
    unknown = {
        (bug.id, model)
        for bug in EVERY
        for model in bug.models or ("nothing",)
        if model not in known and not model.startswith(("#", "PR #", "cadvisor #"))
    }
    assert unknown == set()


def test_a_violator_breaks_one_tested_requirement_and_says_how() -> None:
    rows = load_registry().by_id()
    for bug in VIOLATORS:
        (requirement,) = bug.models
        assert rows[requirement].tested, bug.id
        assert bug.seed.__doc__, bug.id


def test_every_tested_requirement_has_a_violator() -> None:
    broken = {name.partition(" ")[0] for name in hunters.violators()}
    assert {row.id for row in load_registry().requirements if row.tested} == broken


def test_every_bug_finds_the_public_names_that_it_changes() -> None:
    for bug in EVERY:
        with bug.seeded():
            pass
    reached = {
        f"{file.name}:{node.lineno} {node.attr}"
        for file in Path(quality.__file__).parent.glob("bugs/*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if node.attr != "_replace"
    }
    assert reached == set()


def test_a_bug_is_in_the_reference_only_while_that_answers() -> None:
    def seed(changes: Changes) -> None:
        changes.around(CPUState, "assign", lambda _, self, uid, name, own: self)

    healthy = CPUState.assign
    bug = Bug("gives-nothing", "cpus", ("CPU-POOL-005",), seed)
    answer = bug.implementation().call("hello", messages.HelloArgs((1, 1), "tests"))
    assert isinstance(answer, messages.Hello)
    assert CPUState.assign is healthy
    with bug.seeded():
        assert CPUState(3).assign("a", "app", 1).shared == 3
    assert CPUState(3).assign("a", "app", 1).shared == 2


def test_what_was_replaced_comes_back() -> None:
    with ExitStack() as undo:
        changes = Changes(undo)
        changes.replace(CPUManager, "end", lambda self, uid, name: None)
        assert "end" in vars(CPUManager)
        with pytest.raises(AttributeError):
            changes.replace(CPUState, "gone", None)
        with pytest.raises(ValueError, match="'_gone' is private"):
            changes.replace(CPUState, "_gone", None)
    assert "end" not in vars(CPUManager)


# Derived mutants


@pytest.fixture(scope="module")
def derived() -> dict[str, Mutant]:
    return {one.id: one for one in mutants()}


def test_each_mutant_changes_one_rule_that_names_requirements(derived: dict[str, Mutant]) -> None:
    known = load_registry().by_id().keys()
    assert len(derived) > 700
    for one in derived.values():
        assert one.models
        assert {*one.models} <= known
        assert one.code is not rule_function(one.rule).__code__


def test_a_mutant_is_in_the_reference_only_while_it_is_seeded(derived: dict[str, Mutant]) -> None:
    for one in derived.values():
        own = rule_function(one.rule).__code__
        with one.seeded():
            assert rule_function(one.rule).__code__ is one.code
        assert rule_function(one.rule).__code__ is own


def test_every_survivor_is_a_mutant(derived: dict[str, Mutant]) -> None:
    assert survivors.kinds().keys() - derived.keys() == set()


def test_survivors_without_a_reason_and_reasons_without_a_survivor_are_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = dict.fromkeys(("known", "caught"), "equivalent")
    monkeypatch.setattr(survivors, "kinds", lambda: listed)
    found = [*survivors.problems(["known", "new"], ["known", "new", "caught"])]
    assert found == ["SURVIVED new", "caught, though it is listed as a survivor: caught"]
    assert survivors.summary() == "2 equivalent"
