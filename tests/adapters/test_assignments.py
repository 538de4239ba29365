"""`assignments.py`: the calls it makes, and how it counts answers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[2] / "adapters" / "assignments.py"
Choose = Callable[[messages.AssignArgs], messages.Answer]


@pytest.fixture(scope="module")
def assignments() -> ModuleType:
    spec = importlib.util.spec_from_file_location("assignments", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["assignments"] = module
    spec.loader.exec_module(module)
    return module


class Program:
    """A program that assigns with a function."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def call(self, _operation: str, args: messages.AssignArgs) -> messages.Answer:
        """Returns the answer to one call."""
        return self._choose(args)


def count_outcomes(assignments: Any, choose: Choose, most: int = 4) -> tuple[dict[str, int], Any]:
    """Returns the counts on machines with at most so many CPUs, and the output files."""
    found = assignments.Enumeration(Program(choose))
    for shape in assignments.shapes():
        for args in assignments.calls(shape, "1.37") if shape.cpus <= most else ():
            found.ask(args)
    return dict(found.counts), found.smallest


def lowest(args: messages.AssignArgs) -> messages.Answer:
    if args.count > len(args.available):
        return messages.AdmissionRefused("UnexpectedAdmissionError", "not enough")
    return messages.Assigned(args.available.first(args.count))


def test_every_uniform_machine_is_tried_with_both_kinds_of_core_ids(assignments: Any) -> None:
    shapes = assignments.shapes()
    assert len(shapes) == 88
    assert sum(len([*assignments.calls(one, "1.37")]) for one in shapes) == 76_610
    two = next(
        one for one in shapes if one == assignments.UniformMachine(2, 1, 2, 2, ids_per_socket=True)
    )
    cores = [core for node in two.machine().topology for core in node.cores]
    assert [(core.socket_id, core.core_id, core.thread_ids) for core in cores] == [
        (0, 0, (0, 4)),
        (0, 1, (1, 5)),
        (1, 0, (2, 6)),
        (1, 1, (3, 7)),
    ]


def test_the_reference_agrees_with_itself(assignments: Any) -> None:
    reference = Reference()
    counts, smallest = count_outcomes(assignments, lambda args: reference.call("assign", args))
    assert [*counts] == ["same"]
    assert not smallest


def test_own_rules_are_distinguished_from_wrong_answers(assignments: Any) -> None:
    counts, smallest = count_outcomes(assignments, lowest)
    assert {*counts} == {"same", "other"}
    args, message = smallest["other"]
    assert (args.machine.num_cores, message) == (4, "1, and the reference's are 2")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (messages.Assigned(CPUSet({9})), "wrong"),
        (messages.Assigned(CPUSet()), "wrong"),
        (messages.AdmissionRefused("UnexpectedAdmissionError", "never"), "wrong"),
        (messages.Fault("boom"), "crash"),
        (messages.Unsupported("this"), "unsupported"),
    ],
)
def test_other_answers_are_counted_by_kind(
    assignments: Any, answer: messages.Answer, kind: str
) -> None:
    counts, _ = count_outcomes(assignments, lambda _: answer, most=1)
    # Of the two calls on one CPU, one can be satisfied.
    refusal = isinstance(answer, messages.AdmissionRefused)
    assert counts == ({"same": 1, "wrong": 1} if refusal else {kind: 2})


@pytest.mark.parametrize(
    ("expected", "good"),
    [
        ({}, False),
        ({"counts": {"same": 5, "other": 2}}, True),
        ({"counts": {"same": 6, "other": 1}}, False),
        ({"kinds": ["other"]}, True),
        ({"kinds": ["other", "wrong"]}, False),
        ({"kinds": ["wrong"]}, False),
    ],
)
def test_exactly_the_expected_answers_may_fail(
    assignments: Any, expected: dict[str, Any], *, good: bool
) -> None:
    counts = {"same": 5, "other": 2}
    assert assignments.is_expected(counts, ("wrong", "crash", "other"), expected) is good


def test_an_expected_file_is_optional_without_failures(assignments: Any) -> None:
    assert assignments.is_expected({"same": 5, "other": 2}, ("wrong", "crash"), {})
