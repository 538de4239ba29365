"""What a mutated reference is checked with: the cases, the bundled recordings, the tests.

This module runs with the mutated package. A check is told by a name that says all it takes to make
it again: ``case RELEASE ID MACHINE``, ``recording RELEASE ID``, ``test NODEID``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.conformance.differential import recording_check, recordings
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import GivenMachine, ProfileMachine
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.conformance.seeded_bugs import hunting
from numaproof.protocol.events import GOOD
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.requirements import Registry

# Hypothesis is there before pytest begins, which pytest would warn of.
_QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
_OPTIONS = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0", *_QUIET)
_EVERY = 3
"""Of so many recordings one is a check; what the others reach, the cases reach too."""

_OWN = "-"
"""The machine of a case that brings its own."""


@dataclass(frozen=True)
class MutationSuite:
    """The cases, each on the first of its machines and in the newest of its releases; recordings.

    Attributes:
        cases: by id.
        registry: the requirements.
        scratch: an empty folder for state directories and trees.
    """

    cases: Mapping[str, Case]
    registry: Registry
    scratch: Path

    @cached_property
    def machines(self) -> dict[str, ProfileMachine]:
        """Machines of different shapes, by name."""
        return {
            name: ProfileMachine(fakesys.load_profile(name), self.scratch / "machines")
            for name in hunting.MACHINES
        }

    @cached_property
    def _harness_runs(self) -> dict[str, HarnessRun]:
        targets = {release: hunting.target(InProcess(Reference), release) for release in RELEASES}
        return {
            release: HarnessRun(target, self.registry, "mutation", target.hello.version)
            for release, target in targets.items()
        }

    @cached_property
    def _recordings(self) -> dict[str, dict[str, Recording]]:
        return {}

    def _of_release(self, release: str) -> dict[str, Recording]:
        if release not in self._recordings:
            self._recordings[release] = {one.case.id: one for one in recordings.bundled(release)}
        return self._recordings[release]

    def names(self) -> Iterator[str]:
        """Every check but the tests."""
        catalogue = tuple(self.machines.values())
        for case in self.cases.values():
            for release in reversed(RELEASES):
                runs = list(hunting.firsts([case], catalogue, self._harness_runs[release].target))
                if runs:
                    own = isinstance(runs[0].machine, GivenMachine)
                    yield f"case {release} {case.id} {_OWN if own else runs[0].machine.name}"
                    break
        for release in RELEASES:
            kept = list(self._of_release(release))[::_EVERY]
            yield from (f"recording {release} {name}" for name in kept)

    def passes(self, name: str) -> bool:
        """Whether the reference passes a check."""
        kind, release, *which = name.split(" ")
        harness_run = self._harness_runs[release]
        place = self.scratch / release / which[0]
        place.mkdir(parents=True, exist_ok=True)
        if kind == "recording":
            recording = self._of_release(release)[which[0]]
            return recording_check.compare(recording, harness_run.target, place).outcome in GOOD
        case = self.cases[which[0]]
        machine = self.machines[which[1]] if case.machine is None else GivenMachine(case.machine)
        run = SelectedCase(case, machine)
        return runner.run_case(run, harness_run, place / "case").outcome in GOOD


class _Turns:
    """Lets pytest run some of the tests that it finds; tells which comes, keeps which failed."""

    def __init__(
        self, chosen: Sequence[str] | None, coming: Callable[[str], None], pattern: str
    ) -> None:
        self._order = None if chosen is None else {name: n for n, name in enumerate(chosen)}
        self._coming = coming
        self._pattern = pattern
        self.failed: str | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        named = {f"test {item.nodeid}": item for item in items}
        if self._order is None:
            names = [name for name in named if fnmatchcase(name, self._pattern)]
        else:
            names = sorted(named.keys() & self._order.keys(), key=self._order.__getitem__)
        items[:] = [named[name] for name in names]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coming(f"test {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = f"test {report.nodeid}"


def run_tests(
    folder: Path, chosen: Sequence[str] | None, coming: Callable[[str], None], pattern: str = "*"
) -> str | None:
    """Runs tests until one fails.

    Args:
        folder: the tree that has them.
        chosen: their names in the order to run them; None for all whose names match the pattern.
        coming: is called with the name of each before it begins.
        pattern: with the wildcards of a shell.

    Returns:
        What failed: the name of a test, or that tests could not be collected; None for nothing.
    """
    turns = _Turns(chosen, coming, pattern)
    files = ["tests"]
    if chosen is not None:
        files = sorted({name.removeprefix("test ").partition("::")[0] for name in chosen})
    code = pytest.main([*_OPTIONS, f"--rootdir={folder}", *files], plugins=[turns])
    if turns.failed:
        return turns.failed
    good = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return None if code in good else f"tests that end with {code!r}"
