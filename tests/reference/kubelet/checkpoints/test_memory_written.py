"""The Memory Manager's file, byte for byte against what real kubelets wrote."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from numaproof.reference.departures import releases
from numaproof.reference.kubelet.checkpoints import memory

_ROOT = Path(__file__).parents[4]
_KUBELET = Path(os.environ.get("NUMAPROOF_SHARED", _ROOT / "../shared")) / "kubelet"


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
    formats = releases.release(release).memory_files
    assert texts
    for text in texts:
        state = memory.restore(text.encode(), "Static", formats)
        assert memory.dump(state, "Static", formats).decode() == text
