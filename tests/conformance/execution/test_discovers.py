"""Whoever discovers less than cAdvisor does is judged by what it claims to discover."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from pathlib import Path

Changed = Callable[..., InProcess]
MakeTarget = Callable[..., Target]
MakeCase = Callable[..., Any]
Play = Callable[..., tuple[RunResult, Run]]

SEEN = ("nodes", "cores", "num_cores")


def half_blind(found: messages.Answer) -> messages.Answer:
    """A machine whose cores are called otherwise, and listed from the last, without caches."""
    if not isinstance(found, MachineInfo):
        return found
    nodes = tuple(
        msgspec.structs.replace(
            node,
            memory=7,
            caches=None,
            cores=tuple(
                msgspec.structs.replace(core, core_id=number, caches=None, uncore_caches=None)
                for number, core in enumerate(reversed(node.cores or ()))
            ),
        )
        for node in found.topology or ()
    )
    return msgspec.structs.replace(found, topology=nodes, num_sockets=0)


@pytest.fixture
def discovered(
    make_target: MakeTarget, make_case: MakeCase, changed: Changed, tmp_path: Path
) -> Play:
    """Plays a case on the bundled laptop against whoever is half blind."""
    numbers = count()
    laptop = ProfileMachine(fakesys.load_profile("laptop-4c8t"), tmp_path / "tree")

    def play(
        text: str,
        change: Callable[[Any], Any] = half_blind,
        about: tuple[str, ...] = (),
        **hello: Any,
    ) -> Any:
        program = InProcess(lambda: changed(discover=change))
        claims = {
            "level": "placement",
            "oracle": True,
            "judged_as": "either",
            "discovers": SEEN,
            **hello,
        }
        target = make_target(program, **claims)
        assert laptop.info
        case = make_case(text)
        case = msgspec.structs.replace(case, requirements=about or case.requirements)
        run = Run(target, case, laptop.info, laptop.tree, tmp_path / str(next(numbers)))
        return run.play(), run

    return play


def test_only_what_is_claimed_is_compared_with_the_reference(discovered: Play) -> None:
    assert discovered("steps: [{discover: {}}]")[0].outcome == "pass"


def test_a_difference_in_what_is_claimed_fails(discovered: Play) -> None:
    result, _ = discovered("steps: [{discover: {}}]", discovers=(*SEEN, "num_sockets"))
    assert result.message == "differs from the reference: num_sockets\nexpected: 1\ngot: 0"


def test_who_claims_no_less_than_all_is_compared_as_a_whole(discovered: Play) -> None:
    result, _ = discovered("steps: [{discover: {}}]", discovers=None)
    assert (result.outcome, "nodes.0" in result.message) == ("fail", True)


EXPECTS = "steps: [{{discover: {{}}, expect: {{machine: {{{}}}}}}}]"


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ("num_cores: 8, num_sockets: 5", "pass"),
        ("num_cores: 7, num_sockets: 1", "fail"),
        ("num_sockets: 1, memory_capacity: 5", "unsupported"),
    ],
)
def test_a_case_expects_what_is_claimed_and_nothing_else(
    discovered: Play, expected: str, outcome: str
) -> None:
    result, run = discovered(EXPECTS.format(expected))
    assert result.outcome == outcome
    if outcome == "unsupported":
        assert result.message == "the implementation does not have discovery of num_sockets"
        assert run.player.session.unclaimed == "discovery of num_sockets"


def test_a_refusal_is_a_refusal_whatever_is_discovered(discovered: Play) -> None:
    refused = messages.StartRefused("discovery", "no")
    result, _ = discovered("steps: [{discover: {}}]", lambda _: refused)
    assert (result.outcome, "refused" in result.message) == ("fail", True)


def test_managers_are_told_of_the_machine_where_not_all_is_discovered(discovered: Play) -> None:
    result, _ = discovered("steps: [{start: {tree: true}}]")
    assert result.message == "the implementation does not have discovery of every field"
    result, run = discovered("tree: true\nsteps: [{start: {}}]")
    assert result.outcome == "pass"
    assert run.player.session.calls[0].args.machine is not None


WHOLE = "steps: [{discover: {}}]"
ABOUT = (
    *("DISCOVERY-001", "DISCOVERY-002", "DISCOVERY-011", "DISCOVERY-016", "DISCOVERY-018"),
    "CPU-NONE-001",
)


def test_what_is_wrong_of_a_machine_breaks_the_requirements_that_are_about_it(
    discovered: Play,
) -> None:
    seen = (*SEEN, "num_sockets", "node_memory")
    result, run = discovered(WHOLE, about=ABOUT, discovers=seen)
    assert result.message == "differs from the reference: num_sockets\nexpected: 1\ngot: 0"
    assert run.unseen() == ("DISCOVERY-011",)
    assert run.kept(result) == ("DISCOVERY-001", "DISCOVERY-002")
    # Who discovers everything is not excused, but for what is right.
    result, run = discovered(WHOLE, about=ABOUT, discovers=None)
    assert run.unseen() == ()
    assert run.kept(result) == ("DISCOVERY-001",)


def test_what_a_case_is_not_about_breaks_what_is_about_every_machine(discovered: Play) -> None:
    seen = (*SEEN, "num_sockets", "node_memory")
    result, run = discovered(WHOLE, about=("DISCOVERY-001", "DISCOVERY-005"), discovers=seen)
    assert run.violated(result) == ("DISCOVERY-016", "DISCOVERY-018")
    assert run.kept(result) == ("DISCOVERY-001", "DISCOVERY-005")


def test_a_run_that_passes_or_gets_no_machine_keeps_nothing_in_spite_of_it(
    discovered: Play,
) -> None:
    result, run = discovered(WHOLE, about=ABOUT)
    assert (result.outcome, run.kept(result)) == ("pass", ())
    assert run.unseen() == ("DISCOVERY-011", "DISCOVERY-016", "DISCOVERY-018")
    result, run = discovered(WHOLE, lambda _: messages.StartRefused("discovery", "no"), ABOUT)
    assert (result.outcome, run.kept(result)) == ("fail", ())
    result, run = discovered("steps: [{start: {}}]", about=ABOUT)
    assert run.kept(result) == ()


def test_a_difference_in_no_field_breaks_every_requirement(discovered: Play) -> None:
    def reordered(found: messages.Answer) -> messages.Answer:
        assert isinstance(found, MachineInfo)
        (node,) = found.topology or ()
        cores = tuple(reversed(node.cores or ()))
        return msgspec.structs.replace(
            found, topology=(msgspec.structs.replace(node, cores=cores),)
        )

    result, run = discovered(WHOLE, reordered, ABOUT, discovers=None, level="kubelet")
    assert (result.outcome, run.kept(result)) == ("fail", ())
