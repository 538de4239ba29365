"""Questions without a node: all of them, each once, with the answers of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from numaproof.conformance.exhaustion import stateless
from numaproof.conformance.exhaustion.shapes import shapes
from numaproof.protocol import codec
from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.releases import release
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from numaproof.conformance.exhaustion.shapes import Shape
    from numaproof.conformance.exhaustion.stateless import Unit

RELEASE = release(NEWEST, follows_docs=True)
UNITS: list[Unit] = [
    *(unit for shape in shapes(3) for unit in stateless.assignments(shape, RELEASE)),
    *stateless.merges(2, 2, 2, RELEASE),
    *stateless.merges(3, 1, 2, RELEASE),
]


def test_units_know_how_many_questions_they_have() -> None:
    for unit in UNITS:
        questions = [codec.encode(one) for one in unit.questions()]
        assert len(set(questions)) == len(questions) == len(unit)


@pytest.mark.parametrize("number", range(7))
def test_prepared_answers_are_those_of_a_call(number: int) -> None:
    reference = Reference(follows_docs=True)
    for unit in UNITS[number::30]:
        answer = unit.reference(RELEASE)
        for question in unit.questions():
            assert answer(question) == reference.call(unit.operation, question)


def test_illegal_options_are_left_out() -> None:
    (shape, *_) = shapes(2)
    combinations = [unit.options for unit in stateless.assignments(shape, RELEASE)]
    assert () in combinations
    assert ("distribute-cpus-across-cores", "full-pcpus-only") not in combinations


def mirror(shape: Shape) -> dict[int, int]:
    """The CPUs of a machine, each with its counterpart in the mirrored machine."""

    def cpus(of: Shape) -> list[tuple[int, ...]]:
        cores = [core for node in of.machine().topology or () for core in node.cores or ()]
        return [core.thread_ids or () for core in sorted(cores, key=lambda core: core.core_id)]

    pairs = zip(cpus(shape), reversed(cpus(shape.mirror)), strict=True)
    return {one: other for core in pairs for one, other in zip(*core, strict=True)}


def test_machines_with_parts_in_another_order_admit_the_same() -> None:
    mirrored_shapes = [shape for shape in shapes(4) if shape.mirror != shape]
    assert len(mirrored_shapes) > 50
    for shape in mirrored_shapes[::9]:
        counterpart = mirror(shape)
        pairs = zip(
            stateless.assignments(shape, RELEASE),
            stateless.assignments(shape.mirror, RELEASE),
            strict=True,
        )
        for unit, other in pairs:
            answer, other_answer = unit.reference(RELEASE), other.reference(RELEASE)
            for question in unit.questions():
                free = CPUSet(counterpart[cpu] for cpu in question.available)
                reply = other_answer(replace(question, machine=other.machine, available=free))
                assert type(reply) is type(answer(question))
