"""The Memory Manager's file, byte for byte against what real kubelets wrote."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from numaproof.reference.memory import checkpoint
from numaproof.reference.memory.state import Block, MemoryState, NodeMemory, Table

_ROOT = Path(__file__).parents[3]
_KUBELET = Path(os.environ.get("NUMAPROOF_SHARED", _ROOT / "../shared")) / "kubelet"


def _mask(nodes: list[int]) -> int:
    return sum(1 << node for node in nodes)


def _state(file: dict[str, Any]) -> MemoryState:
    nodes = {
        int(node): NodeMemory(
            memory["numberOfAssignments"],
            {kind: Table(*table.values()) for kind, table in memory["memoryMap"].items()},
            _mask(memory["cells"]),
        )
        for node, memory in file["machineState"].items()
    }
    entries = {
        uid: {
            name: tuple(
                Block(_mask(block["numaAffinity"]), block["type"], block["size"])
                for block in blocks
            )
            for name, blocks in containers.items()
        }
        for uid, containers in file.get("entries", {}).items()
    }
    return MemoryState(nodes, entries)


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
    assert texts
    for text in texts:
        assert checkpoint.dump(_state(json.loads(text)), "Static").decode() == text
