"""The suite can fail: the seeded bugs of the gauntlet are caught, by the tables alone.

Nothing is compared with a healthy reference: what catches a bug are the expectations of the
cases and the invariants.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.seeded_bugs import catalogue, hunting
from numaproof.conformance.seeded_bugs.catalogue import BUGS, WHOLE_RUN
from numaproof.conformance.seeded_bugs.hunting import Suite
from numaproof.conformance.seeded_bugs.seeding import Bug, Changes
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol import messages
from numaproof.protocol.events import GOOD
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 1000
"""Case runs that the table has for a bug; each case has had its turn by then."""

EXAMPLES = 50
"""Examples that fuzzing has for a bug."""


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """The project's cases, and a few machines of different shapes."""
    with scratch_folder() as folder:
        machines = [ProfileMachine(fakesys.load_profile(name), folder) for name in hunting.MACHINES]
        yield Suite(loading.bundled_cases(), machines, load_registry())


# `numaproof gauntlet --quick` plays them all; here a part is held to why it is caught.
@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS[::4], ids=lambda bug: bug.id)
def test_a_seeded_bug_is_caught(bug: Bug, suite: Suite) -> None:
    caught = suite.by_table(bug, RUNS)
    assert caught is not None
    # A fault would be one of the change itself, which no longer fits what it stands in for.
    assert caught.outcome in ("fail", "missing expected failure"), caught.message
    assert caught.requirements


@pytest.mark.slow
def test_the_healthy_reference_passes_where_bugs_are_caught(suite: Suite, tmp_path: Path) -> None:
    target = hunting.target(InProcess(Reference))
    harness_run = HarnessRun(target, suite.registry, "numaproof check", "0")
    whole_node = [
        case for case in suite.cases if case.id.startswith(("dev", "mem", "node", "topo"))
    ]
    ends = [
        runner.run_case(run, harness_run, tmp_path / str(number))
        for number, run in enumerate(
            islice(hunting.in_turn(whole_node, suite.catalogue, target), RUNS // 6)
        )
    ]
    assert [(one.case, one.message) for one in ends if one.outcome not in GOOD] == []


def test_every_bug_has_its_own_name_and_says_what_it_is_modelled_on() -> None:
    known = load_registry().by_id()
    ids = Counter(bug.id for bug in (*BUGS, *WHOLE_RUN))
    assert [one for one, count in ids.items() if count > 1] == []
    unknown = {
        (bug.id, model)
        for bug in (*BUGS, *WHOLE_RUN)
        for model in bug.models or ("nothing",)
        if model not in known and not model.startswith(("#", "PR #", "cadvisor #"))
    }
    assert unknown == set()


@pytest.fixture
def bug() -> Bug:
    """Hands out CPUs and leaves them shared."""

    def seed(changes: Changes) -> None:
        changes.around(
            CPUState,
            "assign",
            lambda original, self, uid, name, own: CPUState(
                self.shared, original(self, uid, name, own).exclusive
            ),
        )

    return Bug("shared-all-the-same", "cpus", ("CPU-POOL-005",), seed)


def test_a_bug_is_in_the_reference_only_while_that_answers(bug: Bug) -> None:
    healthy = CPUState.assign
    seeded = bug.implementation()
    answer = seeded.call("hello", messages.HelloArgs((1, 1), "tests"))
    assert isinstance(answer, messages.Hello)
    assert CPUState.assign is healthy
    with bug.seeded():
        assert CPUState(3).assign("a", "app", 1).shared == 3
    assert CPUState(3).assign("a", "app", 1).shared == 2


def test_a_method_that_is_inherited_is_inherited_again(undone: Changes, undo: ExitStack) -> None:
    undone.replace(CPUManager, "reclaim", lambda self, pods: None)
    assert "reclaim" in vars(CPUManager)
    undo.close()
    assert "reclaim" not in vars(CPUManager)


def test_what_is_not_there_cannot_be_replaced(undone: Changes) -> None:
    with pytest.raises(AttributeError):
        undone.replace(CPUState, "gone", None)


def test_a_private_name_cannot_be_replaced(undone: Changes) -> None:
    with pytest.raises(ValueError, match="'_gone' is private"):
        undone.replace(CPUState, "_gone", None)


def test_every_bug_finds_the_public_names_that_it_changes() -> None:
    for bug in (*BUGS, *WHOLE_RUN):
        with bug.seeded():
            pass


def test_no_bug_reaches_for_a_private_name() -> None:
    conventional = {"_replace"}
    reached = {
        f"{file.name}:{node.lineno} {node.attr}"
        for file in Path(catalogue.__file__).parent.glob("bugs/*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if node.attr not in conventional
    }
    assert reached == set()


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    """Undoes changes at the end of a test, or before."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def undone(undo: ExitStack) -> Changes:
    """Changes that do not outlive the test."""
    return Changes(undo)


@pytest.mark.slow
def test_fuzzing_catches_a_bug_with_few_steps(bug: Bug, suite: Suite) -> None:
    found = suite.by_fuzzing(bug, EXAMPLES)
    assert found is not None
    assert "shared" in found.message
    assert len(found.steps) <= 8


def test_what_is_healthy_survives(suite: Suite) -> None:
    healthy = Bug("none", "cpus", (), lambda _: None)
    assert suite.by_table(healthy, 40) is None
    assert suite.by_fuzzing(healthy, 5) is None
