"""A killed program or a stopped worker is not a finding."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.targets import target_of
from numaproof.campaign.worker import UnitWorker
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol.campaign import Configuration, SeedSlice

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.campaign.planning import CampaignSpec

DIES = """
import os, signal, sys
from pathlib import Path
from numaproof.protocol import codec
from numaproof.reference.implementation import Reference
deaths = Path(sys.argv[1])
reference = Reference()
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    if request.op == sys.argv[2] and int(deaths.read_text()):
        deaths.write_text(str(int(deaths.read_text()) - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.buffer.write(
        codec.encode_answer(request.id, reference.call(request.op, codec.decode_args(request)))
    )
    sys.stdout.flush()
"""


@pytest.fixture
def unit_end(campaign_spec: CampaignSpec, tmp_path: Path) -> Callable[[int, str], dict[str, Any]]:
    """Returns the result of a unit of two scenarios whose program is killed `times` times."""

    def play(deaths: int, operation: str) -> dict[str, Any]:
        (tmp_path / "dies.py").write_text(DIES)
        (tmp_path / "deaths").write_text("0")
        words = (sys.executable, str(tmp_path / "dies.py"), str(tmp_path / "deaths"), operation)
        with closing(Subprocess(words, 60.0)) as program:
            hello = target_of(program, kubernetes="1.36", command=words).hello
        job = replace(campaign_spec.job, program=words, hello=hello)
        (tmp_path / "deaths").write_text(str(deaths))
        with closing(UnitWorker(job, tmp_path)) as worker:
            unit = SeedSlice(Configuration("1.36", "kubelet"), 0, 2)
            last = worker.do(unit).lines.splitlines()[-1]
        found: dict[str, Any] = msgspec.json.decode(last)
        return found

    return play


def test_a_program_killed_once_is_retried_with_a_note(unit_end: Any) -> None:
    once = unit_end(1, "admit")
    assert once["outcomes"] == {"pass": 2}
    (note,) = once["notes"]
    assert note == (
        "scenario 0: crash: the program ended at admit with signal SIGKILL; it did not recur"
    )


def test_a_program_killed_at_hello_is_retried(unit_end: Any) -> None:
    assert unit_end(1, "hello")["outcomes"] == {"pass": 2}


def test_a_program_that_dies_twice_is_a_finding(unit_end: Any) -> None:
    always = unit_end(100, "admit")
    assert always["outcomes"] == {"crash": 2}
    assert "notes" not in always
