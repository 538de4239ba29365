"""A run has the same tests and the same totals for each area, whatever fails in it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from builders.targets import target_of
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.check import check
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import load_registry
from numaproof.folders.scratch import scratch_folder
from numaproof.reference.implementation import Reference
from numaproof.reports.junit import junit
from numaproof.reports.summary import summarize
from quality.catalogue import BUGS

if TYPE_CHECKING:
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.reports.summary import Summary

SEEDED = (
    "reserved-cpus-are-handed-out",
    "devices-are-given-twice",
    "removed-pods-keep-their-memory",
)


def checked(implementation: Implementation) -> Summary:
    target = target_of(implementation, kubernetes="1.36", oracle=True)
    # A few cases of every area.
    cases = loading.bundled_cases()[::3]
    with scratch_folder() as folder:
        machine = ProfileMachine(fakesys.load_profile("xeon-gold-6230-2s"), folder)
        runs = runner.select(cases, [machine], target)
        return summarize(check(runs, HarnessRun(target, load_registry(), "numaproof check", "1")))


@pytest.fixture(scope="module")
def green() -> Summary:
    summary = checked(InProcess(Reference))
    assert summary.verdict == "passed"
    return summary


def identities(summary: Summary) -> list[tuple[str | None, str | None]]:
    tests = ET.XML(junit(summary)).iter("testcase")
    return [(one.get("classname"), one.get("name")) for one in tests]


@pytest.mark.parametrize("name", SEEDED)
def test_tests_and_area_totals_do_not_depend_on_what_fails(green: Summary, name: str) -> None:
    red = checked(next(bug for bug in BUGS if bug.id == name).implementation())
    assert red.tally.bad
    assert identities(red) == identities(green)
    totals = [{area: tally.total for area, tally in one.areas.items()} for one in (red, green)]
    assert totals[0] == totals[1]


def test_no_two_tests_of_a_run_have_the_same_name(green: Summary) -> None:
    names = identities(green)
    assert len({*names}) == len(names) > 50
