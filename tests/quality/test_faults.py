"""Faults: seeded bugs, requirement mutants, rule mutants and the list of survivors."""

from __future__ import annotations

import ast
import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import quality
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import messages
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState
from quality import searchers, survivors
from quality.catalogue import BUGS, REQUIREMENT_MUTANTS, WHOLE_RUN
from quality.rule_mutants import Mutant, mutants, rule_function
from quality.seeding import Bug, Changes, SubjectBugs, shape

EVERY = (*BUGS, *WHOLE_RUN, *REQUIREMENT_MUTANTS)


def test_every_bug_has_a_unique_name_and_models() -> None:
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


def test_a_requirement_mutant_breaks_one_tested_requirement() -> None:
    rows = load_registry().by_id()
    for bug in REQUIREMENT_MUTANTS:
        (requirement,) = bug.models
        assert rows[requirement].is_tested, bug.id
        assert bug.seed.__doc__, bug.id


def test_every_tested_requirement_has_a_mutant() -> None:
    broken = {name.partition(" ")[0] for name in searchers.requirement_mutants()}
    assert {row.id for row in load_registry().requirements if row.is_tested} == broken


def test_the_public_names_that_bugs_replace_exist() -> None:
    for bug in EVERY:
        with bug.inject():
            pass
    reached = {
        f"{file.name}:{node.lineno} {node.attr}"
        for file in Path(quality.__file__).parent.glob("bugs/*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if node.attr != "_replace"
    }
    assert reached == set()


def test_a_bug_is_active_only_during_a_call() -> None:
    def seed(changes: Changes) -> None:
        changes.around(CPUState, "assign", lambda rule, self: self)

    healthy = CPUState.assign
    bug = Bug("gives-nothing", "cpus", ("CPU-POOL-005",), seed)
    answer = bug.implementation().call("hello", messages.HelloArgs((1, 1), "tests"))
    assert isinstance(answer, messages.Hello)
    assert CPUState.assign is healthy
    with bug.inject():
        assert CPUState(3).assign("a", "app", 1).shared == 3
    assert CPUState(3).assign("a", "app", 1).shared == 2


def test_replaced_attributes_are_restored() -> None:
    with ExitStack() as undo:
        changes = Changes(undo)
        changes.replace(CPUManager, "end", lambda self, uid, name: None)
        assert "end" in vars(CPUManager)
        with pytest.raises(AttributeError):
            changes.replace(CPUState, "gone", None)
        with pytest.raises(ValueError, match="'_gone' is private"):
            changes.replace(CPUState, "_gone", None)
    assert "end" not in vars(CPUManager)


def test_a_replacement_names_and_overrides_arguments() -> None:
    with ExitStack() as undo:
        changes = Changes(undo)
        changes.around(CPUState, "assign", lambda rule, cpus: rule(cpus=cpus << 1))
        assert CPUState(7).assign("a", "app", 1).shared == 5
        changes.around(CPUState, "assign", lambda rule, *args: (rule(*args).shared, len(args)))
        assert CPUState(7).assign("a", "app", 1) == (5, 4)
        with pytest.raises(TypeError, match="takes the arguments self, uid, container, cpus"):
            changes.around(CPUState, "assign", lambda rule, nobody: rule())


def test_a_function_after_a_rule_gets_its_result() -> None:
    with ExitStack() as undo:
        Changes(undo).after(CPUState, "assign", lambda state, uid: (uid, state.shared))
        assert CPUState(3).assign("a", "app", 1) == ("a", 2)


def test_arguments_are_recorded_of_all_or_active_calls() -> None:
    with ExitStack() as undo:
        changes = Changes(undo)
        uids = changes.record_argument(CPUState, "assign", "uid")
        inside = changes.record_argument(CPUState, "assign", "cpus", inside=True)
        changes.after(CPUState, "assign", lambda state: tuple(inside))
        CPUState(3).assign("a", "app", 1)
        CPUState(3).assign(uid="b", container="app", cpus=1)
        assert (uids, inside) == (["a", "b"], [])


def test_a_decorator_turns_a_function_or_shape_into_a_bug() -> None:
    seeds = SubjectBugs("cpus")

    @shape(CPUState, "assign")
    def move_cpus(by: Any, rule: Any, cpus: Any) -> Any:
        return rule(cpus=by(cpus))

    @seeds("CPU-POOL-005").by(move_cpus)
    def cpus_are_doubled(cpus: Any) -> Any:
        """Shifts the CPUs."""
        return cpus << 1

    @seeds("CPU-POOL-006", kubernetes="1.30").of(move_cpus, lambda cpus: cpus << 2)
    def cpus_are_quadrupled() -> None: ...

    @seeds("CPU-POOL-005").replace(CPUState, "assign", lambda self, uid, container, cpus: "none")
    def nothing_is_assigned() -> None: ...

    found = []
    for bug in seeds.bugs:
        with bug.inject():
            found.append(CPUState(7).assign("a", "app", 1))
    assert [getattr(one, "shared", one) for one in found] == [5, 3, "none"]
    first, second, _ = seeds.bugs
    assert (first.id, first.models, first.seed.__doc__) == (
        "cpus-are-doubled",
        ("CPU-POOL-005",),
        "Shifts the CPUs.",
    )
    assert (second.id, second.subject, second.kubernetes) == ("cpus-are-quadrupled", "cpus", "1.30")


# Rule mutants


@pytest.fixture(scope="module")
def mutants_by_id() -> dict[str, Mutant]:
    return {one.id: one for one in mutants()}


def test_each_mutant_changes_one_rule_that_names_requirements(
    mutants_by_id: dict[str, Mutant],
) -> None:
    known = load_registry().by_id().keys()
    assert len(mutants_by_id) > 700
    for one in mutants_by_id.values():
        assert one.models
        assert {*one.models} <= known
        assert one.code is not rule_function(one.rule).__code__


def test_a_mutant_is_active_only_while_injected(
    mutants_by_id: dict[str, Mutant],
) -> None:
    for one in mutants_by_id.values():
        own = rule_function(one.rule).__code__
        with one.inject():
            assert rule_function(one.rule).__code__ is one.code
        assert rule_function(one.rule).__code__ is own


def test_every_survivor_is_a_mutant(mutants_by_id: dict[str, Mutant]) -> None:
    assert survivors.kinds().keys() - mutants_by_id.keys() == set()


def test_unlisted_survivors_and_stale_entries_are_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = dict.fromkeys(("known", "caught"), "equivalent")
    monkeypatch.setattr(survivors, "kinds", lambda: listed)
    found = [*survivors.problems(["known", "new"], ["known", "new", "caught"])]
    assert found == ["SURVIVED new", "caught, but listed as a survivor: caught"]
    assert survivors.summary() == "2 equivalent"
