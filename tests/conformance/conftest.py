"""A small machine, the reference as a target, and cases played against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from builders.targets import case_of, target_of
from numaproof import fakesys
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> ProfileMachine:
    """4 cores with 2 threads each, adjacent siblings, one node, one cache."""
    return ProfileMachine(fakesys.load_profile("laptop-4c8t"), tmp_path_factory.mktemp("trees"))


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> list[ProfileMachine]:
    """Every bundled machine."""
    folder = tmp_path_factory.mktemp("catalogue")
    return [ProfileMachine(fakesys.load_profile(one), folder) for one in fakesys.bundled_profiles()]


@pytest.fixture(scope="session")
def info(laptop: ProfileMachine) -> MachineInfo:
    """The discovered laptop."""
    assert laptop.info is not None
    return laptop.info


@pytest.fixture
def reference() -> Iterator[Target]:
    """The reference in this process."""
    with closing(InProcess(Reference)) as implementation:
        yield target_of(implementation)


Play = Callable[..., tuple[RunResult, Run]]


@pytest.fixture
def play(tmp_path: Path, info: MachineInfo) -> Play:
    """Plays steps against a target, by default on the laptop."""
    numbers = iter(range(1000))

    def play(target: Target, text: str, machine: MachineInfo = info) -> tuple[RunResult, Run]:
        run = Run(target, case_of(text), machine, None, tmp_path / str(next(numbers)))
        return run.play(), run

    return play
