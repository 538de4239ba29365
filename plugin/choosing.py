"""Chooses the cases that become tests, each on a machine."""

from __future__ import annotations

from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading, naming
from numaproof.conformance.execution.machines import GivenMachine, ProfileMachine, matches
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.conformance.execution.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import AnyMachine

_MACHINES = pytest.StashKey[list[ProfileMachine]]()
_KNOWN = frozenset({"select", "machine", "cases"})


def test_id(selected: SelectedCase) -> str:
    """What pytest calls the test, in brackets."""
    given = isinstance(selected.machine, GivenMachine)
    return selected.case.id if given else f"{selected.case.id}-{selected.machine.name}"


def select(arguments: Mapping[str, Any], folder: Path, config: pytest.Config) -> list[SelectedCase]:
    """The cases that a marker selects, each on the first machine that it applies to.

    Args:
        arguments: the arguments of the marker.
        folder: the folder of the test's file, which case files are relative to.
        config: keeps the machines for all tests.

    Raises:
        pytest.UsageError: the marker has an unknown argument, or selects nothing.
    """
    unknown = arguments.keys() - _KNOWN
    if unknown:
        raise pytest.UsageError(
            f"unknown argument {', '.join(sorted(unknown))} of the marker numaproof; it takes"
            " select, machine and cases"
        )
    pattern, named = arguments.get("select", "*"), arguments.get("machine", "*")
    files = arguments.get("cases", ())
    own = [folder / file for file in ([files] if isinstance(files, str) else files)]
    try:
        cases = loading.with_own(() if own else loading.bundled_cases(), own)
    except fakesys.DocumentError as error:
        raise pytest.UsageError(f"numaproof: {error}") from None
    found = [
        SelectedCase(case, machine)
        for case in cases
        if naming.selects(pattern, case)
        for machine in _first(case, named, config)
    ]
    if not found:
        matching = any(naming.selects(pattern, case) for case in cases)
        ids = (name for case in cases for name in naming.names(case))
        near = "" if matching else naming.did_you_mean(pattern, ids)
        raise pytest.UsageError(
            f"numaproof: no case matches select={pattern!r} on a machine {named!r}{near}"
        )
    return found


def _first(case: Case, named: str, config: pytest.Config) -> Iterator[AnyMachine]:
    if case.machine is not None:
        yield GivenMachine(case.machine)
        return
    for machine in _machines(config):
        if fnmatchcase(machine.name, named) and matches(machine, case.machines):
            yield machine
            return


def _machines(config: pytest.Config) -> list[ProfileMachine]:
    """The bundled machines; their written trees are removed at the end of the run."""
    if _MACHINES not in config.stash:
        kept = ExitStack()
        config.add_cleanup(kept.close)
        folder = kept.enter_context(scratch_folder())
        config.stash[_MACHINES] = [
            ProfileMachine(fakesys.load_profile(name), folder)
            for name in fakesys.bundled_profiles()
        ]
    return config.stash[_MACHINES]
