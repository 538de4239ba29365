"""The files of 1.37: texts and refusals are those of the kubelet's own code, v1.37.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from numaproof.reference.checkpoints import cpu, files, memory
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.releases import TABLE
from numaproof.reference.memory.state import MemoryState

if TYPE_CHECKING:
    from numaproof.reference.deviations.releases import Release

PODS = {"PodLevelResourceManagers": True}
BASELINES = {"InPlacePodVerticalScalingExclusiveCPUs": True}
OLD = '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}'
DATA = '{"policyName":"static","defaultCpuSet":"0-7"}'
WHOLE = (
    '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152,'
    '"data":"{\\"policyName\\":\\"static\\",\\"defaultCpuSet\\":\\"0-7\\"}",'
    '"dataChecksum":3294586087}'
)
WITH_PODS = (
    '{"policyName":"static","defaultCpuSet":"0,3,8-11","entries":{"uid-a":{"app":"1","log":"2"}},'
    '"podEntries":{"uid-a":{"cpuSet":"1-2"}},"checksum":1396850731}'
)


ROWS = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_bytes())


def of(gates: dict[str, bool] | None = None) -> Release:
    return TABLE["1.37"].under(gates or {})


def restored(text: str, gates: dict[str, bool] | None = None) -> CPUState:
    return cpu.restore(text.encode(), "static", {}, of(gates).cpu_files)


def written(state: CPUState, gates: dict[str, bool] | None = None) -> str:
    return cpu.dump(state, "static", of(gates).cpu_files).decode()


def refusal(text: str, gates: dict[str, bool] | None = None) -> str:
    with pytest.raises(files.CheckpointError) as refused:
        restored(text, gates)
    return str(refused.value)


def of_data(data: Any, checksum: int | None = None) -> str:
    """A file with nothing but this data, under its own checksum unless another is given."""
    text = data if isinstance(data, str) else json.dumps(data)
    right = files.checksum(f"(string){text}")
    return json.dumps({"data": text, "dataChecksum": right if checksum is None else checksum})


@pytest.mark.parametrize("gates", [{}, PODS, BASELINES])
def test_a_file_says_the_same_twice_whichever_gates_are_on(gates: dict[str, bool]) -> None:
    assert written(CPUState(0xFF, baselines={}), gates) == WHOLE
    assert restored(WHOLE, gates) == restored(OLD, gates)
    assert restored(WHOLE, gates).shared == 0xFF


def test_names_are_escaped_in_the_text_that_is_escaped_again() -> None:
    text = written(CPUState(0b1001, {"a<": {"app": 0b10}}), BASELINES)
    assert '"entries":{"a\\u003c":{"app":"1"}}' in text
    assert '\\"entries\\":{\\"a\\\\u003c\\":{\\"app\\":\\"1\\"}}' in text
    assert restored(text, BASELINES).exclusive == {"a<": {"app": 0b10}}


def test_pods_are_written_to_data_alone_and_kept_under_their_gate() -> None:
    text = written(restored(WITH_PODS, PODS), PODS)
    assert json.loads(text)["checksum"] == 4083596890
    assert json.loads(text)["dataChecksum"] == 4235660838
    assert "podEntries" not in json.loads(text)
    assert restored(text, PODS).pods == {"uid-a": 0b110}
    assert restored(text).pods == {}


def test_pods_of_a_format_that_does_not_fit_are_forgotten() -> None:
    text = WITH_PODS.replace("1396850731", "0")
    assert restored(text, PODS).pods == {}
    assert json.loads(written(restored(text, PODS), PODS))["dataChecksum"] == 3371936549


def test_baselines_are_what_containers_have_unless_the_file_says_otherwise() -> None:
    state = restored(WITH_PODS, BASELINES)
    assert state.baselines == {"uid-a": {"app": 0b10, "log": 0b100}}
    data = {
        "policyName": "static",
        "entries": {"u": {"app": "1"}},
        "baselines": {"u": {"app": {"baseline": "5"}}, "gone": None},
    }
    assert restored(of_data(data), BASELINES).baselines == {"u": {"app": 0b100000}, "gone": {}}
    assert restored(of_data(data)).baselines is None


def test_baselines_stay_with_the_first_cpus_and_end_with_the_container() -> None:
    state = CPUState(0b111111, baselines={}).assign("u", "app", 0b10).share("u", "app", 0b100)
    assert state.baselines == {"u": {"app": 0b10}}
    assert state.assign("u", "log", 0b1000).release("u", "app").baselines == {"u": {"log": 0b1000}}
    assert state.release("u", "app").baselines == {}
    assert state.assign_pod("v", 0b10000).baselines == state.baselines


def test_a_list_in_a_baseline_that_is_none_refuses_the_start_under_the_gate_alone() -> None:
    data = {"policyName": "static", "baselines": {"u": {"app": {"baseline": "x"}}}}
    assert restored(of_data(data)) == CPUState()
    assert refusal(of_data(data), BASELINES) == (
        'could not parse Baseline cpuset "x" for container "app" in pod "u": '
        'strconv.Atoi: parsing "x": invalid syntax'
    )


@pytest.mark.parametrize("row", ROWS["data"], ids=lambda row: row["says"][-60:])
def test_damage_to_data_is_final(row: dict[str, str]) -> None:
    assert refusal(row["file"]) == row["says"]


@pytest.mark.parametrize("row", ROWS["traceless"], ids=lambda row: row["says"][-60:])
def test_without_a_trace_of_data_the_last_format_says_what_is_wrong(row: dict[str, str]) -> None:
    assert refusal(row["file"]) == row["says"]


@pytest.mark.parametrize("trace", ['"data":""', '"data":null', '"data":{}', '"dataChecksum":0'])
def test_data_that_says_nothing_is_no_trace_of_it(trace: str) -> None:
    assert restored(f"{OLD[:-1]},{trace}}}").shared == 0xFF


@pytest.mark.parametrize(("gates", "taken"), [({}, True), (PODS, False)])
def test_under_the_gate_of_pods_the_earlier_format_needs_the_checksum_of_before(
    gates: dict[str, bool],
    taken: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    text = OLD.replace("14413152", "1506833380")
    if taken:
        assert restored(text, gates).shared == 0xFF
    else:
        assert refusal(text, gates) == "checkpoint is corrupted"


MEMORY = (
    '{"policyName":"None","machineState":{},"checksum":4236770233,'
    '"data":"{\\"policyName\\":\\"None\\",\\"machineState\\":{}}","dataChecksum":3093843326}'
)


@pytest.mark.parametrize("gates", [{}, PODS])
def test_a_memory_file_says_the_same_twice(gates: dict[str, bool]) -> None:
    formats = of(gates).memory_files
    assert memory.dump(MemoryState(), "None", formats).decode() == MEMORY
    assert memory.restore(MEMORY.encode(), "None", formats) == MemoryState()
    earlier = b'{"policyName":"None","machineState":{},"checksum":4236770233}'
    assert memory.restore(earlier, "None", formats) == MemoryState()


def test_damage_to_the_data_of_a_memory_file_is_final() -> None:
    for text, said in (
        (
            MEMORY.replace("3093843326", "1"),
            "could not load v3 checkpoint: checkpoint is corrupted",
        ),
        (
            of_data({"machineState": {"0": {"cells": {}}}}),
            (
                "could not load v3 checkpoint: failed to deserialize memory manager checkpoint "
                "data: json: cannot unmarshal object into Go struct field "
                "NUMANodeState.machineState.cells of type []int"
            ),
        ),
    ):
        with pytest.raises(files.CheckpointError) as refused:
            memory.restore(text.encode(), "None", of().memory_files)
        assert str(refused.value) == said
