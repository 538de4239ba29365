"""A small machine, the reference as a target, and cases played against it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from builders.targets import target_of
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.machine import MachineInfo

Answers = dict[str, Callable[[messages.Answer], messages.Answer]]


class Changed:
    """The reference with some of its answers changed, by operation."""

    def __init__(self, **changes: Callable[[Any], Any]) -> None:
        self._reference = Reference()
        self._changes = changes

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The reference's answer, changed."""
        answer = self._reference.call(operation, args)
        change = self._changes.get(operation)
        return change(answer) if change else answer


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> ProfileMachine:
    """4 cores of 2 threads, siblings adjacent; one node, one cache."""
    return ProfileMachine(fakesys.load_profile("laptop-4c8t"), tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="session")
def info(laptop: ProfileMachine) -> MachineInfo:
    """What discovery makes of the laptop."""
    assert laptop.info is not None
    return laptop.info


@pytest.fixture
def reference() -> Iterator[Target]:
    """The reference in this process."""
    with closing(InProcess(Reference)) as implementation:
        yield target_of(implementation)


def case_of(text: str) -> Case:
    """The case that a text of steps describes."""
    body = textwrap.indent(textwrap.dedent(text).strip(), "  ")
    head = "cases:\n- id: test\n  title: A test\n  requirements: []\n"
    (case,) = loading.parse(head + body, "test.yaml")
    return case


Play = Callable[..., tuple[RunResult, Run]]


@pytest.fixture
def play(tmp_path: Path, info: MachineInfo) -> Play:
    """Plays the steps of a text against a target on the laptop."""
    numbers = iter(range(1000))

    def play(target: Target, text: str) -> tuple[RunResult, Run]:
        run = Run(target, case_of(text), info, None, tmp_path / str(next(numbers)))
        return run.play(), run

    return play


@pytest.fixture
def make_target() -> Callable[..., Target]:
    """See `target_of`."""
    return target_of


@pytest.fixture
def make_case() -> Callable[[str], Case]:
    """See `case_of`."""
    return case_of


@pytest.fixture
def changed() -> type[Changed]:
    """See `Changed`."""
    return Changed
