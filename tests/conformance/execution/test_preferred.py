"""Cases say by expressions which devices a plugin would have allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import machines
from builders.targets import target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.errors import CaseError
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.run import RunResult

CASE = """
cases:
- id: test
  title: A test
  requirements: []
  let: {last: 2}
  devices: {vendor.example/nic: [null, null, null]}
  preferred: {vendor.example/nic: ["WHICH"]}
  steps:
  - admit: {pod: a, containers: {app: {limits: {vendor.example/nic: 1}}}}
    expect: {containers: {app: {devices: {vendor.example/nic: [d2]}}}}
"""


def played(which: str, folder: Path) -> RunResult:
    """How the case ends with one preferred device."""
    (case,) = loading.parse(CASE.replace("WHICH", which), "test.yaml")
    target = target_of(InProcess(Reference))
    return Run(target, case, machines.regular(nodes=2), None, folder).play()


def test_ids_of_preferred_devices_may_have_expressions(tmp_path: Path) -> None:
    assert played("d${last}", tmp_path / "last").outcome == "pass"
    assert played("d${last - 1}", tmp_path / "before").outcome == "fail"


def test_what_comes_to_no_id_is_a_mistake_in_the_case(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="Expected `str`, got `int`"):
        played("${last}", tmp_path)
