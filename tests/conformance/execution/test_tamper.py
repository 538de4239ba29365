"""The harness's own damage to checkpoint files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.execution.session import tamper
from numaproof.folders.state_directory import StateDirectory

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {"policyName": "static", "defaultCpuSet": "0-7"}
ONE = checkpoints.text(FIELDS)
TWO = checkpoints.text({**FIELDS, "data": FIELDS})


def tampered(path: Path, text: str, how: str) -> str:
    path.write_text(text)
    tamper(StateDirectory(path.parent), path.name, how)
    return path.read_text()


@pytest.mark.parametrize(
    ("how", "same"),
    [
        ("checksum", {"policyName", "defaultCpuSet", "data"}),
        ("policy", {"defaultCpuSet", "checksum", "dataChecksum"}),
        ("old checksum", {"policyName", "defaultCpuSet", "data", "dataChecksum"}),
        ("old policy", {"defaultCpuSet", "checksum", "data", "dataChecksum"}),
        ("data", {"policyName", "defaultCpuSet", "checksum", "dataChecksum"}),
        ("data checksum", {"policyName", "defaultCpuSet", "checksum", "data"}),
        ("no data", {"policyName", "defaultCpuSet", "checksum"}),
    ],
)
def test_damage_is_to_one_part_alone_or_to_both(tmp_path: Path, how: str, same: set[str]) -> None:
    before, after = json.loads(TWO), json.loads(tampered(tmp_path / "file", TWO, how))
    assert {name for name in before if before[name] == after.get(name)} == same


@pytest.mark.parametrize("how", ["data", "data checksum", "no data"])
def test_a_file_of_one_part_has_no_other_to_damage(tmp_path: Path, how: str) -> None:
    assert tampered(tmp_path / "file", ONE, how) == ONE


def test_a_file_without_its_second_part_is_one_of_an_earlier_release(tmp_path: Path) -> None:
    assert tampered(tmp_path / "file", TWO, "no data") == ONE
