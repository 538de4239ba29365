"""Limits on the dialogue's duration and on the program's output."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.doctor import program as program_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis

    Examine = Callable[..., Diagnosis]

OPERATIONS = ('["start", "admit", "remove", "state"]', '["start"]')
FEATURES = ('["container-removal", "restart", "reconfiguration"]', "[]")
PRINTED = 'print(json.dumps({"id": request["id"], **answer}), flush=True)'


def findings(diagnosis: Diagnosis) -> list[str]:
    return [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]


def test_a_huge_line_ends_the_dialogue(
    examine_driver: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numaproof.protocol.codec.LONGEST_ANSWER", 1 << 20)
    diagnosis = examine_driver((PRINTED, 'print("x" * (1 << 23), flush=True)'))
    assert findings(diagnosis) == ["a line is longer than 1048576 bytes"]
    assert all(len(one.response) <= 4096 for one in diagnosis.exchanges)


def test_endless_output_ends_the_dialogue(examine_driver: Examine) -> None:
    began = time.monotonic()
    diagnosis = examine_driver((PRINTED, 'while True: print("again")'))
    assert not diagnosis.healthy
    assert any("output" in one for one in findings(diagnosis))
    assert time.monotonic() - began < 40


def test_slow_answers_lead_to_advice(
    examine_driver: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_module, "SLOW", 0.0)
    diagnosis = examine_driver()
    assert diagnosis.healthy
    assert any(one.startswith("the answer took") for one in findings(diagnosis))


def test_a_dialogue_ends_at_its_time_limit(
    examine_driver: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_module, "MAX_SECONDS", 1.0)
    diagnosis = examine_driver((PRINTED, f"import time; time.sleep(0.3)\n        {PRINTED}"))
    assert findings(diagnosis)[-1].startswith("no answer: the whole dialogue has taken")


@pytest.mark.parametrize("child", ["sleep 0.4", "true"])
def test_processes_that_exit_in_time_are_not_mentioned(child: str, examine_driver: Examine) -> None:
    ending = 'if __name__ == "__main__":\n    main()'
    started = f"import subprocess; subprocess.Popen({child.split()})"
    found = findings(examine_driver((ending, f"{ending}\n    {started}"), OPERATIONS, FEATURES))
    assert not [sentence for sentence in found if "processes behind" in sentence]
