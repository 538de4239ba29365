"""The documented findings: one section and one case file for every named defect."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.targets import target_of
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import GivenMachine, ProfileMachine
from numaproof.conformance.execution.runner import SelectedCase, run_case
from numaproof.conformance.requirements import load_registry
from numaproof.protocol.releases import RELEASES, between
from numaproof.reference.deviations import releases as table
from numaproof.reference.deviations.defects import DEFECTS
from numaproof.reference.deviations.deviation import defect_of
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from numaproof.conformance.execution.machines import AnyMachine
    from numaproof.reference.deviations.deviation import Defect

PAGE = Path(__file__).parents[3] / "docs" / "findings.md"
SECTIONS = {
    name: " ".join(re.sub("^> ", "", text, flags=re.MULTILINE).split())
    for name, text in re.findall(
        r"^### (\S+)\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
}


each_defect = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)


def releases(defect: Defect) -> str:
    """Formats a defect's consecutive releases."""
    at = [RELEASES.index(release) for release in defect.releases]
    assert at == list(range(at[0], at[-1] + 1))
    first, last = defect.releases[0], defect.releases[-1]
    return first if first == last else f"{first} to {last}"


@each_defect
def test_a_defects_section_agrees_with_the_table(defect: Defect) -> None:
    section = SECTIONS[defect.name]
    issues = [defect.issue] if defect.issue else []
    assert re.findall(r"\]\((https:[^)]+)\)", section) == issues
    reported = "".join(f" [#{issue.rpartition('/')[2]}]({issue})," for issue in issues)
    files = f"[case](findings/{defect.name}.yaml)"
    if not issues and RELEASES[-1] in defect.releases:
        files += f", [report](findings/{defect.name}.md)"
    assert section.endswith(f" {releases(defect)},{reported} {files}")
    if defect.answers:
        same = re.search(r"Same as for \[(\S+)\]\(#\1\)\.", section)
        assert defect.sentence in (SECTIONS[same[1]] if same else section)
    else:
        assert re.search(
            "panics?|never ends|never finishes|never gets an answer|hangs|takes minutes", section
        )


def test_every_section_and_file_is_about_a_defect() -> None:
    names = {defect.name for defect in DEFECTS}
    assert SECTIONS.keys() == names
    files = {file.stem for file in (PAGE.parent / "findings").glob("*.yaml")}
    assert files - names == {"arm-cache-without-id"}


def outcome(name: str, kubernetes: str, folder: Path, *, as_documented: bool) -> str:
    """Runs the only case of a finding's file on its only machine with the reference."""
    (case,) = loading.read_file(PAGE.parent / "findings" / f"{name}.yaml")
    assert case.id == name
    machine: AnyMachine
    if case.machine:
        machine = GivenMachine(case.machine)
    else:
        (profile,) = case.machines.names
        machine = ProfileMachine(fakesys.load_profile(profile), folder / "trees")
    reference = InProcess(lambda: Reference(follows_docs=as_documented))
    target = target_of(
        reference, kubernetes=kubernetes, baseline="documented" if as_documented else "kubelet"
    )
    harness_run = HarnessRun(target, load_registry(), "numaproof replay", "0")
    return run_case(SelectedCase(case, machine), harness_run, folder / "state").outcome


@each_defect
@pytest.mark.parametrize("keeps", ["kubelet", "documents"])
def test_a_defects_file_fails_on_the_kubelet_alone(
    defect: Defect, tmp_path: Path, keeps: str
) -> None:
    documented = keeps == "documents"
    ended = outcome(defect.name, defect.releases[-1], tmp_path, as_documented=documented)
    assert ended == ("expected failure" if defect.answers and not documented else "pass")


@pytest.mark.parametrize(
    "defect", [one for one in DEFECTS if one.answers], ids=lambda defect: defect.name
)
def test_without_its_override_a_defect_does_not_show(
    defect: Defect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = table.release(defect.releases[-1])
    others = tuple(one for one in release.deviations if defect_of(one) is not defect)
    assert len(others) < len(release.deviations)
    without = replace(release, deviations=others)
    monkeypatch.setattr(table, "release", lambda *_, **__: without)
    ended = outcome(defect.name, release.version, tmp_path, as_documented=True)
    assert ended == "pass"


@pytest.mark.parametrize("kubernetes", between("1.32"))
def test_findings_without_a_defect_are_the_references_behaviour(
    kubernetes: str, tmp_path: Path
) -> None:
    assert outcome("arm-cache-without-id", kubernetes, tmp_path, as_documented=False) == "pass"
