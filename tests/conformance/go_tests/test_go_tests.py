"""Cases as Go tests for the kubelet's own packages."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from builders.checkout import ROOT
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.generation import GoTest, first_machine, go_test
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINDINGS = ROOT / "docs" / "findings"

MACHINE = """\
  machine:
    num_cores: 2
    num_sockets: 1
    memory_capacity: 2147483648
    topology:
    - {node_id: 0, memory: 2147483648, cores: [
        {core_id: 0, thread_ids: [0], socket_id: 0}, {core_id: 1, thread_ids: [1], socket_id: 0}]}
"""
STATIC = "config: {cpuManagerPolicy: static, reservedSystemCPUs: '0'}"
ADMIT = "admit: {pod: a, containers: {app: {limits: {cpu: 1, memory: 64Mi}}}}"


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], GoTest]:
    """Writes the only case of a file as a test for a release."""
    trees = tmp_path_factory.mktemp("trees")
    machines = [
        ProfileMachine(fakesys.load_profile(one), trees) for one in fakesys.bundled_profiles()
    ]

    def write_test(file: Path, release: str) -> GoTest:
        (case,) = loading.read_file(file)
        return go_test(case, first_machine(case, machines, release), release)

    return write_test


def of(text: str, release: str = RELEASES[-1]) -> str:
    """The test of a case on a machine with two CPUs."""
    head = "cases:\n- id: a-case\n  title: A title\n  requirements: []\n"
    (case,) = loading.parse(f"{head}{MACHINE}{text}", "case.yaml")
    assert case.machine is not None
    return go_test(case, case.machine, release).text


WITHOUT_TEST = ("quota-limits-exclusive-cpus", "cores-with-equal-ids-joined")
"""Defects that no manager's package shows."""


@pytest.fixture(scope="module")
def tests(write: Callable[[Path, str], GoTest]) -> dict[str, GoTest]:
    """The tests of named defects, each for the newest release that has the defect."""
    return {
        one.name: write(FINDINGS / f"{one.name}.yaml", one.releases[-1])
        for one in DEFECTS
        if one.name not in WITHOUT_TEST
    }


def test_every_defect_of_a_manager_has_a_test(tests: dict[str, GoTest]) -> None:
    places = {(one.package, one.function) for one in tests.values()}
    assert len(places) == len(DEFECTS) - len(WITHOUT_TEST)


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="needs gofmt")
def test_tests_are_formatted_as_gofmt_does(tests: dict[str, GoTest], tmp_path: Path) -> None:
    for name, test in tests.items():
        (tmp_path / f"{name}_test.go").write_text(test.text, "utf-8")
    ended = subprocess.run(["gofmt", "-d", "."], cwd=tmp_path, capture_output=True, check=True)
    assert ended.stdout.decode() == ""


def test_reports_match_their_script() -> None:
    script: dict[str, Any] = runpy.run_path(str(FINDINGS / "reports.py"), run_name="reports")
    written = {file.name: file.read_text("utf-8") for file in FINDINGS.glob("*.md")}
    by_hand = {f"{name}.md" for name in script["BY_HAND"]}
    assert by_hand < written.keys()
    generated = {name: text for name, text in written.items() if name not in by_hand}
    assert generated == script["reports"](), "python docs/findings/reports.py"


@pytest.mark.parametrize(
    ("release", "call"),
    [
        ("1.34", "policy.Allocate(st, podA, &podA.Spec.Containers[0])"),
        ("1.35", "policy.Allocate(logger, st, podA, &podA.Spec.Containers[0])"),
        (
            "1.37",
            "policy.Allocate(logger, st, podA, &podA.Spec.Containers[0], lifecycle.AddOperation)",
        ),
    ],
)
def test_calls_have_the_parameters_of_the_release(release: str, call: str) -> None:
    text = of(f"  {STATIC}\n  steps:\n  - {ADMIT}\n", release)
    assert f"if err := {call}; err != nil" in text
    assert ("ktesting" in text) == (release != "1.34")


def test_a_refusal_is_expected_with_its_reason() -> None:
    step = ADMIT.replace("cpu: 1", "cpu: 2") + "\n    expect: {refused: UnexpectedAdmissionError}"
    assert 'if err == nil {\n\t\tt.Errorf("Allocate() succeeded")' in of(
        f"  {STATIC}\n  steps:\n  - {step}\n"
    )


def test_an_open_step_expects_the_documented_outcome() -> None:
    step = ADMIT.replace("cpu: 1", "cpu: 2") + "\n    expect: anything"
    assert "if err == nil {" in of(f"  {STATIC}\n  steps:\n  - {step}\n")


@pytest.mark.parametrize(
    ("options", "steps", "reason"),
    [
        (
            "tell: [quota]",
            f"  - {ADMIT}\n    expect: {{containers: {{app: {{quota: false}}}}}}\n",
            "step 1: `quota` is set by package kuberuntime",
        ),
        ("check_node: true", f"  - {ADMIT}\n", "`check_node`: no manager compares pods with the"),
        ("level: admission", "  - start: {tree: true}\n", "`tree`: cAdvisor reads the machine"),
        (
            "level: admission",
            "  - start: {}\n  - start: {config: {reservedSystemCPUs: '1'}}\n    expect: anything\n",
            "step 2: flags and changes at a restart are not supported",
        ),
        (
            "level: admission",
            "  - reconcile: {}\n",
            "step 1: a test in cm/cpumanager can't show `reconcile`",
        ),
    ],
)
def test_what_one_package_cannot_show_is_an_error(options: str, steps: str, reason: str) -> None:
    with pytest.raises(NotExpressibleError, match=reason):
        of(f"  {STATIC}\n  {options}\n  steps:\n{steps}")
