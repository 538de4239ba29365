"""Selects the cases and machines that become tests."""

from __future__ import annotations

from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.runner import SelectedCase
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.selection import needs
from numaproof.conformance.selection.patterns import Selection, SelectionError
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case

_MACHINES = pytest.StashKey[list[machines.ProfileMachine]]()
_KNOWN = frozenset({"select", "exclude", "machine", "cases"})


def test_id(selected_case: SelectedCase) -> str:
    """Returns pytest's id for the test."""
    given = isinstance(selected_case.machine, machines.GivenMachine)
    return (
        selected_case.case.id if given else f"{selected_case.case.id}-{selected_case.machine.name}"
    )


def select(arguments: Mapping[str, Any], folder: Path, config: pytest.Config) -> list[SelectedCase]:
    """Returns the cases that a marker selects, each with the first machine it applies to.

    Args:
        arguments: the marker's arguments.
        folder: the folder of the test file, to which case files are relative.
        config: stores the machines for all tests.

    Raises:
        pytest.UsageError: the marker has an unknown argument, or selects nothing.
    """
    unknown = arguments.keys() - _KNOWN
    if unknown:
        raise pytest.UsageError(
            f"unknown argument {', '.join(sorted(unknown))} of the `numaproof` marker (expected"
            " select, exclude, machine or cases)"
        )
    select, exclude = (_texts(arguments.get(name, ())) for name in ("select", "exclude"))
    named = arguments.get("machine", "*")
    own = [folder / file for file in _texts(arguments.get("cases", ()))]
    try:
        registry = load_registry()
        bundled = () if own else loading.bundled_cases()
        cases = loading.with_own(bundled, own, registry.by_id())
        selection = Selection(select, exclude, registry, needs.features_of)
        selection.check(cases, option="select=", exclude_option="exclude=")
        with loading.locate_errors(own):
            found = [
                SelectedCase(case, machine)
                for case in selection.of(cases)
                for machine in _first(case, named, config)
            ]
    except (fakesys.DocumentError, loading.CaseError, SelectionError) as error:
        raise pytest.UsageError(f"numaproof: {error}") from None
    if not found:
        raise pytest.UsageError(
            f"numaproof: no selected case applies to any machine matching {named!r}"
        )
    return found


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _first(case: Case, pattern: str, config: pytest.Config) -> Iterator[machines.AnyMachine]:
    if case.machine is not None:
        yield machines.GivenMachine(case.machine)
        return
    for machine in _machines(config):
        if fnmatchcase(machine.name, pattern) and machines.matches(machine, case):
            yield machine
            return


def _machines(config: pytest.Config) -> list[machines.ProfileMachine]:
    """Returns the bundled machines; their trees are removed at the end of the run."""
    if _MACHINES not in config.stash:
        kept = ExitStack()
        config.add_cleanup(kept.close)
        folder = kept.enter_context(scratch_folder())
        config.stash[_MACHINES] = [
            machines.ProfileMachine(fakesys.load_profile(name), folder)
            for name in fakesys.bundled_profiles()
        ]
    return config.stash[_MACHINES]
