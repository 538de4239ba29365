"""Lives led by coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.targets import target_of
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.fuzzing.exploration import Explorer, on_its_machine
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.genes import Gene, life, mutate, new_genes
from numaproof.conformance.fuzzing.lineage import Lineage
from numaproof.protocol import messages
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import Scenario

CLAIMS = Capabilities(Reference().hello(hello_args("tests")), NEWEST)


def blocks(scenario: Scenario) -> set[str]:
    """The lengths of a life's series of admissions."""
    verbs = " ".join(step.verb for step in scenario.case.steps)
    return {str(length) for length in range(50) if " ".join(["admit"] * length) in verbs}


def play(lives: int, *, reports: bool) -> set[str]:
    """Plays lives and returns what they reach; the lineage learns it only if `reports`."""
    lineage, found = Lineage(CLAIMS), set[str]()
    for seed in range(lives):
        new = blocks(lineage.next(seed))
        lineage.add(new if reports else ())
        found |= new
    assert bool(lineage.kept_lives) == reports
    return found


def test_a_lineage_climbs_higher_than_as_many_new_lives() -> None:
    guided, independent = (play(200, reports=reports) for reports in (True, False))
    assert len(guided) > 2 * len(independent)


def test_the_same_coverage_leads_to_the_same_lives() -> None:
    one, two = Lineage(CLAIMS), Lineage(CLAIMS)
    for seed in range(30):
        scenario = one.next(seed)
        assert scenario == two.next(seed)
        one.add(blocks(scenario))
        two.add(blocks(scenario))


def test_the_choices_of_a_gene_shift_to_their_neighbours() -> None:
    choices, shifted = Gene(7).choices, Gene(7, ((1, 1), (2, -1))).choices
    plain = [choices.integer(0, 9) for _ in range(4)]
    assert [shifted.integer(0, 9) for _ in range(4)] == [
        plain[0],
        (plain[1] + 1) % 10,
        (plain[2] - 1) % 10,
        plain[3],
    ]


def test_changed_lives_stay_within_the_claims(tmp_path: Path) -> None:
    target = target_of(
        InProcess(Reference),
        kubernetes=NEWEST,
        operations=("start", "admit", "remove", "state"),
        policies=messages.Policies(cpu=("none", "static")),
        options=messages.Options(),
        features=("restart",),
    )
    explorer, choices = Explorer(target, tmp_path), Seeded(1)
    genes = new_genes(choices, target.capabilities)
    for number in range(40):
        genes = mutate(choices, genes, new_genes(choices, target.capabilities))
        case = life(genes, target.capabilities, f"life-{number}")
        assert {step.verb for step in case.steps} <= {"start", "admit", "remove"}
        if number % 4 == 0:
            assert case.machine is not None
            played = explorer.play(on_its_machine(case))
            assert played.result.outcome != "fault", (number, played.result)
            assert played.run.player.session.missing_claim == "", number


@pytest.mark.parametrize("operations", [("merge",), ("start",)])
def test_a_program_with_few_operations_has_lives(operations: tuple[str, ...]) -> None:
    hello = target_of(InProcess(Reference), operations=operations, features=()).hello
    lives = Lineage(Capabilities(hello, NEWEST))
    verbs = {step.verb for seed in range(10) for step in lives.next(seed).case.steps}
    assert verbs == {*operations}
