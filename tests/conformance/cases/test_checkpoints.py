"""Checkpoint files built from fields, compared with files written by kubelets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.checkpoints import FieldsError
from numaproof.reference.checkpoints import cpu
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import release

CHECKSUMS = [*yaml.safe_load_all(Path(__file__).with_name("checksums.yaml").read_bytes())]


@pytest.mark.parametrize("row", CHECKSUMS)
def test_checksums_equal_the_kubelets(row: dict[str, Any]) -> None:
    assert checkpoints.checksum(row["fields"]) == row["checksum"]


def test_a_file_is_compact_and_ends_with_its_checksum() -> None:
    fields = {"policyName": "static", "defaultCpuSet": "0-7"}
    golden = '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}'
    assert checkpoints.text(fields) == golden
    assert cpu.dump(CPUState(0xFF, {}, {}), "static", release("1.36").cpu_files).decode() == golden


def test_a_given_checksum_is_kept_and_none_is_omitted() -> None:
    assert checkpoints.text({"policyName": 5, "checksum": 7}) == '{"policyName":5,"checksum":7}'
    assert checkpoints.text({"checksum": 0, "policyName": ""}) == '{"checksum":0,"policyName":""}'
    assert checkpoints.text({"policyName": "static", "checksum": None}) == '{"policyName":"static"}'


def test_the_data_part_is_a_string_with_its_own_checksum() -> None:
    fields = {"policyName": "static", "defaultCpuSet": "0-7"}
    golden = (
        '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152,'
        '"data":"{\\"policyName\\":\\"static\\",\\"defaultCpuSet\\":\\"0-7\\"}",'
        '"dataChecksum":3294586087}'
    )
    assert checkpoints.text({**fields, "data": fields}) == golden
    assert (
        checkpoints.text({**fields, "data": '{"policyName":"static","defaultCpuSet":"0-7"}'})
        == golden
    )
    assert checkpoints.text(checkpoints.like(fields, golden)) == golden
    assert checkpoints.like(fields, None) is fields
    assert checkpoints.like({"data": ""}, golden) == {"data": ""}


def test_the_data_part_may_be_alone_or_wrong() -> None:
    assert checkpoints.text({"data": "x", "dataChecksum": None}) == '{"data":"x"}'
    assert checkpoints.text({"data": 7, "dataChecksum": 1}) == '{"data":7,"dataChecksum":1}'
    assert checkpoints.text({"policyName": "", "dataChecksum": 1}).endswith('"dataChecksum":1}')
    with pytest.raises(FieldsError, match="7 is not a string"):
        checkpoints.text({"data": 7})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"policyName": 5}, "5 is not a string"),
        ({"policyNam": "static"}, "CPUManagerCheckpoint has no policyNam"),
        ({"machineState": {"zero": {}}}, r"a key of state\.NUMANodeMap is not a number"),
        ({"machineState": []}, r"\[\] is not a state\.NUMANodeMap"),
    ],
)
def test_unknown_fields_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FieldsError, match=complaint):
        checkpoints.text(fields)
