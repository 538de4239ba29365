"""The shared code for adapters of each language, used in a real adapter."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMON = Path(__file__).parents[2] / "adapters" / "common"
HERE = Path(__file__).parent / "common"

pytestmark = pytest.mark.commands


@pytest.fixture(params=["go", "python"])
def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "python":
        for file in (HERE / "adapter.py", COMMON / "python" / "protocol.py"):
            shutil.copy(file, tmp_path)
        return [sys.executable, str(tmp_path / "adapter.py")]
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    for file in ("main.go", "go.mod"):
        shutil.copy(HERE / "go" / file, tmp_path)
    replace = f"-replace=numaproof.example/adapter={COMMON / 'go'}"
    subprocess.run(["go", "mod", "edit", replace], cwd=tmp_path, check=True)
    subprocess.run(["go", "build", "-p", "1", "-o", "adapter", "."], cwd=tmp_path, check=True)
    return [str(tmp_path / "adapter")]


def ask(command: list[str], *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the answers to requests, numbered from 1."""
    lines = [
        json.dumps({"id": number, "op": operation, "args": args})
        for number, (operation, args) in enumerate(requests, 1)
    ]
    ended = subprocess.run(
        command, input="\n".join([*lines, ""]), capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer.pop("id") for answer in answers] == [*range(1, len(requests) + 1)]
    assert "foreign code prints" in ended.stderr
    return answers


def assign_request(count: int, **more: Any) -> tuple[str, dict[str, Any]]:
    return "assign", {"machine": {}, "available": "8,2-4,0", "count": count, **more}


def test_an_adapter_can_give_every_kind_of_answer(adapter: list[str]) -> None:
    options = {"full-pcpus-only": "true"}
    hello, ok, empty, refused, unsupported, unknown, fault, after = ask(
        adapter,
        ("hello", {"protocol": [1, 1], "harness": "numaproof"}),
        assign_request(4),
        assign_request(0),
        assign_request(6),
        assign_request(1, options=options),
        ("state", {}),
        assign_request(-1),
        assign_request(1),
    )
    assert hello["ok"]["name"] == "lowest"
    assert ok == {"ok": {"cpus": "0,2-4"}}
    assert empty == {"ok": {"cpus": ""}}
    assert refused["refused"] == {"reason": "UnexpectedAdmissionError", "message": "not enough"}
    assert unsupported == {"unsupported": {"what": "options"}}
    assert unknown == {"unsupported": {"what": "operation state"}}
    assert set(fault) == {"fault"}
    assert "assign" in fault["fault"]["trace"]
    assert after == {"ok": {"cpus": "0"}}
