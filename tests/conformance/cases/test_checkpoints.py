"""Checkpoint files built from fields, held against files that kubelets wrote."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.checkpoints import FieldsError
from numaproof.reference.checkpoints import cpu
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import release

EMPTY = {"total": 0, "systemReserved": 0, "allocatable": 0, "reserved": 0, "free": 0}
MEMORY = {"total": 14537457664, "systemReserved": 1073741824, "allocatable": 13463715840}
BLOCK = {"numaAffinity": [0], "type": "memory", "size": 67108864}


def machine(reserved: int, blocks: int) -> dict[str, Any]:
    free = MEMORY["allocatable"] - reserved
    tables = {
        "hugepages-1Gi": EMPTY,
        "hugepages-2Mi": EMPTY,
        "memory": {**MEMORY, "reserved": reserved, "free": free},
    }
    return {"0": {"numberOfAssignments": blocks, "memoryMap": tables, "cells": [0]}}


GOLDEN: list[tuple[dict[str, Any], int]] = [
    ({"policyName": "static", "defaultCpuSet": "0-7"}, 14413152),
    ({"policyName": "none", "defaultCpuSet": ""}, 1353318690),
    (
        {
            "policyName": "static",
            "defaultCpuSet": "0,4-7",
            "entries": {"uid-two": {"first": "1", "second": "2-3"}},
        },
        217800766,
    ),
    ({"policyName": "static", "defaultCpuSet": "0,3-7", "entries": {"c0ffee": "1-2"}}, 499793697),
    (
        {
            "policyName": "static",
            "defaultCpuSet": "0,3,8-11",
            "entries": {"uid-a": {"app": "1", "log": "2"}},
            "podEntries": {"uid-a": {"cpuSet": "1-2"}},
        },
        1396850731,
    ),
    ({"policyName": "None", "machineState": {}}, 4236770233),
    ({"policyName": "Static", "machineState": {}}, 3940083781),
    ({"policyName": "Static", "machineState": None}, 3824511554),
    ({"policyName": "Static", "machineState": machine(0, 0)}, 3042284807),
    ({"policyName": "Static", "machineState": machine(0, 0), "entries": None}, 2972910768),
    (
        {
            "policyName": "Static",
            "machineState": machine(67108864, 1),
            "entries": {"uid-web": {"app": [BLOCK]}},
        },
        3665004977,
    ),
    (
        {
            "policyName": "Static",
            "machineState": machine(1073741824, 1),
            "entries": {"uid-a": {"app": [BLOCK], "log": [{**BLOCK, "size": 1006632960}]}},
            "podEntries": {"uid-a": {"memoryBlocks": [{**BLOCK, "size": 1073741824}]}},
        },
        60125114,
    ),
]
"""Fields and checksums of files of each format, as kubelets 1.33 to 1.36 wrote or took them."""


@pytest.mark.parametrize(("fields", "golden"), GOLDEN)
def test_fields_have_the_checksum_that_kubelets_give_them(
    fields: dict[str, Any], golden: int
) -> None:
    assert checkpoints.checksum(fields) == golden


def test_a_file_is_compact_with_its_checksum_last() -> None:
    fields = {"policyName": "static", "defaultCpuSet": "0-7"}
    golden = '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}'
    assert checkpoints.text(fields) == golden
    assert cpu.dump(CPUState(0xFF, {}, {}), "static", release("1.36").cpu_files).decode() == golden


def test_a_given_checksum_is_written_as_it_is_and_none_is_left_out() -> None:
    assert checkpoints.text({"policyName": 5, "checksum": 7}) == '{"policyName":5,"checksum":7}'
    assert checkpoints.text({"checksum": 0, "policyName": ""}) == '{"checksum":0,"policyName":""}'
    assert checkpoints.text({"policyName": "static", "checksum": None}) == '{"policyName":"static"}'


def test_the_second_part_is_a_text_with_a_checksum_of_its_own() -> None:
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


def test_the_second_part_may_stand_alone_or_be_wrong() -> None:
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
def test_fields_that_no_structure_has_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FieldsError, match=complaint):
        checkpoints.text(fields)
