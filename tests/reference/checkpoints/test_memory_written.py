"""The Memory Manager's file, byte for byte against what real kubelets wrote."""

from __future__ import annotations

import gzip
import json

import pytest

from builders.checkout import SHARED
from numaproof.reference.checkpoints import files, memory
from numaproof.reference.deviations import releases

_KUBELET = SHARED / "kubelet"


def _recorded(release: str) -> set[str]:
    found = set()
    with gzip.open(_KUBELET / f"scenarios-{release}.jsonl.gz", "rt") as lines:
        for line in lines:
            for answer in json.loads(line)["expect"]:
                files = ((answer or {}).get("ok") or {}).get("files") or {}
                text = files.get("memory_manager_state", "")
                if text.startswith('{"policyName":"Static","machineState":{"'):
                    found.add(text)
    return found


@pytest.mark.skipif(not _KUBELET.is_dir(), reason="the recordings of kubelets are not there")
@pytest.mark.parametrize("release", ["1.33", "1.34", "1.35", "1.36"])
def test_every_recorded_file_is_written_again_byte_for_byte(release: str) -> None:
    texts = _recorded(release)
    known = releases.release(release).memory_files
    assert texts
    for text in texts:
        state = memory.restore(text.encode(), "Static", known)
        assert memory.dump(state, "Static", known).decode() == text


NODES = (
    '{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":8,"systemReserved":1,'
    '"allocatable":7,"reserved":2,"free":5}},"cells":[0]}}'
)


@pytest.mark.parametrize(("entry", "blocks"), [("{}", "<nil>"), ('{"memoryBlocks":[]}', "[]")])
def test_1_36_tells_an_entry_without_a_list_from_one_with_an_empty_list(
    entry: str, blocks: str
) -> None:
    kept = releases.release("1.36").under({"PodLevelResourceManagers": True}).memory_files
    file = f'{{"policyName":"Static","machineState":{NODES},"podEntries":{{"u":{entry}}}}}'
    state = memory.restore(file.encode(), "Static", kept)
    dumped = (
        "(*state.MemoryManagerCheckpoint){PolicyName:(string)Static "
        "MachineState:(state.NUMANodeMap)"
        "map[0:<*>{NumberOfAssignments:(int)1 MemoryMap:(map[v1.ResourceName]*state.MemoryTable)"
        "map[memory:<*>{TotalMemSize:(uint64)8 SystemReserved:(uint64)1 Allocatable:(uint64)7 "
        "Reserved:(uint64)2 Free:(uint64)5}] Cells:([]int)[0]}] "
        "Entries:(state.ContainerMemoryAssignments)map[] PodEntries:(state.PodMemoryAssignments)"
        f"map[u:{{MemoryBlocks:([]state.Block){blocks}}}] Checksum:(checksum.Checksum)0}}"
    )
    written = memory.dump(state, "Static", kept).decode()
    assert written.endswith(f'"podEntries":{{"u":{{}}}},"checksum":{files.checksum(dumped)}}}')
