from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from numaproof.protocol import codec
from numaproof.protocol.releases import RELEASES
from numaproof.reference import server
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

HELLO = b'{"id": 7, "op": "hello", "args": {"protocol": [1, 1], "harness": "test"}}\n'


def answers(*requests: bytes, as_documented: bool = False) -> list[dict[str, Any]]:
    stdout = io.BytesIO()
    reference = Reference(follows_docs=as_documented)
    server.serve(io.BytesIO(b"".join(requests)), stdout, reference)
    return [json.loads(line) for line in stdout.getvalue().splitlines()]


def test_hello_lists_the_references_claims() -> None:
    (answer,) = answers(HELLO)
    assert answer["id"] == 7
    assert answer["ok"]["kubernetes"] == [*RELEASES]
    assert answer["ok"]["level"] == "kubelet"
    assert "merge" in answer["ok"]["operations"]
    assert len(answer["ok"]["options"]["cpu"]) == 6


def test_the_server_is_a_kubelet_unless_documents_are_requested() -> None:
    args = {
        "machine": machines.plain(machines.regular(cores=8, cores_per_cache=4)),
        "available": "1-15",
        "count": 4,
        "options": {"prefer-align-cpus-by-uncorecache": "true"},
    }
    request = json.dumps({"id": 1, "op": "assign", "args": args}).encode() + b"\n"
    stdout = io.BytesIO()
    server.serve(io.BytesIO(request), stdout, Reference())
    (kubelet,), (documented,) = answers(request), answers(request, as_documented=True)
    assert json.loads(stdout.getvalue()) == kubelet != documented


@pytest.mark.parametrize(
    ("line", "number", "message"),
    [
        (b"nonsense\n", 0, "the line is not a request"),
        (b'{"id": 5, "op": "hello"\n', 5, "the line is not a request"),
        (b'{"id": 5, "op": "hello", "args": {}, "more": 1}\n', 5, "unknown field `more`"),
        (b'{"id": 5, "op": "fly", "args": {}}\n', 5, "unknown operation 'fly'"),
        (b'{"id": 5, "op": "admit", "args": {"pods": {}}}\n', 5, "admit: "),
        (b'{"id": 5, "op": "state", "args": {}}\n', 5, "needs a started node"),
    ],
)
def test_a_bad_line_is_a_fault_and_the_next_is_answered(
    line: bytes, number: int, message: str
) -> None:
    bad, good = answers(line, b"\n", HELLO)
    assert bad["id"] == number
    assert message in bad["fault"]["message"]
    assert good["id"] == 7


def test_an_overlong_line_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "LONGEST_LINE", 100)
    bad, good = answers(b'{"id": 3, "op": "' + b"x" * 350 + b'"}\n', HELLO)
    assert (bad["id"], bad["fault"]["message"]) == (3, "the line is longer than 100 bytes")
    assert good["id"] == 7


def test_a_node_is_kept_between_requests(tmp_path: Path) -> None:
    args = {"machine": machines.plain(machines.regular()), "config": {}, "state_dir": str(tmp_path)}
    start = json.dumps({"id": 1, "op": "start", "args": args}).encode()
    state, merge = b'{"id": 2, "op": "state", "args": {}}', b'{"id": 3, "op": "merge", "args": {'
    merge += b'"nodes": [0], "policy": "none", "providers": []}}'
    started, asked, merged = answers(start + b"\n", state + b"\n", merge)
    assert started["ok"]["cpus"]["all"] == "0-7"
    assert set(asked["ok"]["files"]) == {"cpu_manager_state", "memory_manager_state"}
    assert merged["ok"] == {"hint": {"numa": None, "preferred": False}, "admit": True}
