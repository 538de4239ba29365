"""Merging as the real kubelet was recorded to do it."""

from __future__ import annotations

import gzip
import json

import pytest

from builders.checkout import SHARED
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference

RECORDED = SHARED / "kubelet" / "merges-1.35.jsonl.gz"


@pytest.mark.skipif(not RECORDED.is_file(), reason="no recordings of the real kubelet at hand")
def test_every_recorded_merge_is_answered_as_recorded() -> None:
    reference = Reference()
    differing = []
    with gzip.open(RECORDED, "rt") as lines:
        records = [json.loads(line) for line in lines]
    for record in records:
        args = codec.from_plain(record["merge"], messages.MergeArgs)
        answer = json.loads(codec.encode_answer(0, reference.call("merge", args)))
        del answer["id"]
        if answer != record["expect"]:
            differing.append((record["seed"], answer, record["expect"]))
    assert len(records) == 600
    assert differing == []
