"""The dialogue itself: what is asked of whom, how long it may take, and what comes of it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.diagnosis import lines
from numaproof.conformance.diagnosis import program as program_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis

    Examine = Callable[..., Diagnosis]

PRINTED = 'print(json.dumps({"id": request["id"], **answer}), flush=True)'

FEW = '{"refused": {"reason": "UnexpectedAdmissionError", "message": "too few"}}'
THINKING = 'print("thinking", file=sys.stderr, flush=True); import time; time.sleep(60)'

NO_FEATURES = (
    '"features": ["container-removal", "restart", "reconfiguration"],',
    '"features": [],',
)


def findings(diagnosis: Diagnosis) -> list[str]:
    return [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]


def operations(diagnosis: Diagnosis) -> list[str]:
    return [one.step for one in diagnosis.exchanges if one.request]


def test_a_correct_driver_is_healthy_and_is_told_what_to_run_next(examined: Examine) -> None:
    diagnosis = examined()
    assert findings(diagnosis) == []
    assert diagnosis.healthy
    assert diagnosis.name == "small-driver"
    check, fuzz, claim = diagnosis.next_steps
    assert "numaproof check --implementation" in check
    assert "numaproof fuzz --implementation" in fuzz
    assert '`"level": "admission"`' in claim


def test_the_dialogue_has_a_start_admissions_a_restart_refusals_and_a_removal(
    examined: Examine,
) -> None:
    diagnosis = examined()
    first = [one for one in diagnosis.exchanges if one.process == 1]
    asked = [one.step for one in first if one.step != "state"]
    assert asked[:3] == ["hello", "start", "start"]
    rest = [*["admit"] * 4, "hello", "remove", "start", *["admit"] * 3, "end of input"]
    assert asked[3:] == rest
    answers = {one.about: one.response for one in first}
    assert '"stage": "cpu"' in answers[first[1].about]
    assert '"UnexpectedAdmissionError"' in answers["a pod asks for 4 CPUs, of which 3 are left"]


def test_a_second_process_finds_the_pods_of_the_first(examined: Examine) -> None:
    diagnosis = examined()
    second = [one.step for one in diagnosis.exchanges if one.process == 2 and one.request]
    starts = ["start", "state", "start", "state", "admit", "admit", "state"]
    assert second[: len(starts) + 5] == ["hello", *starts, "admit", "state", "remove", "state"]


def test_after_a_refused_start_the_next_is_no_restart_on_a_changed_node(examined: Examine) -> None:
    features = '"features": ["container-removal", "restart", "reconfiguration"]'
    diagnosis = examined((features, '"features": ["container-removal", "restart"]'))
    assert operations(diagnosis).count("admit") == 15


def test_what_is_not_claimed_is_not_asked(examined: Examine) -> None:
    diagnosis = examined(
        ('["start", "admit", "remove", "state"]', '["start", "admit"]'), NO_FEATURES
    )
    assert set(operations(diagnosis)) == {"hello", "start", "admit"}
    assert diagnosis.healthy
    assert {"state", "remove", "merge", "assign"} <= set(diagnosis.not_claimed)


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("assign", '{"ok": {"cpus": "1-3,5"}} if request["args"]["count"] == 4 else FEW'),
        ("merge", '{"ok": {"hint": {"numa": None, "preferred": False}, "admit": True}}'),
        ("discover", '{"refused": {"stage": "discovery", "message": "not yet"}}'),
    ],
)
def test_a_program_with_one_operation_is_asked_only_that(
    examined: Examine, operation: str, answer: str
) -> None:
    diagnosis = examined(
        ("HELLO = {", f"FEW = {FEW}\nHELLO = {{"),
        ('["start", "admit", "remove", "state"]', f'["{operation}"]'),
        NO_FEATURES,
        ('getattr(driver, request["op"])(request["args"])', f"({answer})"),
        ("            driver.save()\n", ""),
    )
    assert set(operations(diagnosis)) == {"hello", operation}
    assert diagnosis.healthy is (operation != "discover")
    if operation == "discover":
        assert findings(diagnosis) == ["this must not be refused: not yet"]


def test_no_process_is_started_again_where_restarts_are_not_claimed(examined: Examine) -> None:
    diagnosis = examined(NO_FEATURES)
    assert diagnosis.healthy
    assert {one.process for one in diagnosis.exchanges} == {1}
    # One that is refused, the node's, two for claims, and one that is refused again.
    assert operations(diagnosis).count("start") == 5


def test_no_answer_asks_for_a_flush_if_the_end_of_input_brings_one(examined: Examine) -> None:
    diagnosis = examined((PRINTED, PRINTED.replace(", flush=True", "")), timeout=2.0)
    assert findings(diagnosis) == [
        "no answer within 2 s; it came only when the program's input ended. Did you flush?"
    ]
    assert "flush standard output after each response" in diagnosis.next_steps[0]


def test_no_answer_at_all_is_named_with_the_end_of_the_log(examined: Examine) -> None:
    diagnosis = examined(
        (PRINTED, THINKING),
        timeout=2.0,
    )
    (finding,) = [one for exchange in diagnosis.exchanges for one in exchange.findings]
    assert finding.wrong == "no answer within 2 s. Did you flush?"
    assert finding.log == "thinking\n"


def test_a_line_without_end_is_named(examined: Examine) -> None:
    diagnosis = examined(
        (PRINTED, PRINTED.replace("flush=True", 'end="", flush=True')), timeout=2.0
    )
    assert "bytes came without a line break" in findings(diagnosis)[0]


def test_a_huge_line_is_given_up(examined: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numaproof.protocol.codec.LONGEST_ANSWER", 1 << 20)
    diagnosis = examined((PRINTED, 'print("x" * (1 << 23), flush=True)'))
    assert findings(diagnosis) == ["a line is longer than 1048576 bytes"]
    assert all(len(one.response) <= 4096 for one in diagnosis.exchanges)


def test_output_without_end_is_given_up(examined: Examine) -> None:
    began = time.monotonic()
    diagnosis = examined((PRINTED, 'while True: print("again")'))
    assert not diagnosis.healthy
    assert any("output" in one for one in findings(diagnosis))
    assert time.monotonic() - began < 40


def test_slow_answers_are_advice(examined: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "SLOW", 0.0)
    diagnosis = examined()
    assert diagnosis.healthy
    assert any(one.startswith("the answer took") for one in findings(diagnosis))


def test_a_dialogue_ends_when_its_time_is_over(
    examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_module, "MOST_SECONDS", 1.0)
    diagnosis = examined((PRINTED, f"import time; time.sleep(0.3)\n        {PRINTED}"))
    assert findings(diagnosis)[-1].startswith("no answer: the whole dialogue has taken")


def test_a_hello_that_forgets_the_node_is_named(examined: Examine) -> None:
    diagnosis = examined(('answer = {"ok": HELLO}', 'answer = {"ok": HELLO}; driver.held = {}'))
    assert any(one.endswith("[state-lists-pods-on-node]") for one in findings(diagnosis))


def test_hello_must_be_the_same_each_time(examined: Examine) -> None:
    diagnosis = examined(('"version": "0.1"', '"version": str(__import__("time").time())'))
    assert "this `hello` differs from the first" in findings(diagnosis)


CLAIMING = """
import json, sys
from numaproof.protocol import codec
from numaproof.reference.implementation import Reference
reference = Reference(documented=True)
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    answer = reference.call(request.op, codec.decode_args(request))
    said = json.loads(codec.encode_answer(request.id, answer))
    if request.op == "hello":
        said["ok"] |= CLAIMS
    print(json.dumps(said), flush=True)
"""


@pytest.mark.parametrize(
    "claims",
    [
        {"level": "invariants", "policies": {"memory": ["Static"]}},
        {
            "level": "admission",
            "policies": {"cpu": ["static"], "topology": ["single-numa-node"], "scope": ["pod"]},
        },
        {"level": "placement", "operations": ["start", "admit", "devices"], "policies": {}},
    ],
)
def test_who_claims_part_and_does_it_is_healthy(
    claims: dict[str, object], examined_text: Examine
) -> None:
    text = CLAIMING.replace("CLAIMS", repr({**claims, "features": ["restart"]}))
    diagnosis = examined_text(text, timeout=60.0)
    assert [one for one in findings(diagnosis) if "without `state`" not in one] == []


def test_a_mistake_made_again_is_listed_once(examined: Examine) -> None:
    diagnosis = examined(('"memory": [],\n', '"memory": None,\n'))
    listed = [step for step in diagnosis.next_steps if "memory` is null" in step]
    assert len({one.split(":")[1] for one in listed}) == len(listed)


def test_a_level_above_what_is_true_is_named(examined: Examine) -> None:
    diagnosis = examined(
        ('"level": "invariants"', '"level": "admission"'),
        ('"reason": "UnexpectedAdmissionError"', '"reason": "OutOfcpu"'),
    )
    (found,) = findings(diagnosis)
    assert found.startswith("level admission is claimed, and the documents say otherwise: ")
    answers = "expected: refused with UnexpectedAdmissionError\ngot: refused with OutOfcpu"
    assert answers in found


def test_an_exclusive_set_is_judged_without_state_too(examined: Examine) -> None:
    without = ('["start", "admit", "remove", "state"]', '["start", "admit"]')
    diagnosis = examined(
        without,
        ("free = self.allocatable & self.shared()", "free = {0}"),
        ("if count > len(free):", "if False:"),
    )
    assert "exclusive CPUs of app\nexpected: 2 CPUs\ngot: 1 CPU (0)" in findings(diagnosis)
    apart = "exclusive CPUs of app\nexpected: CPUs apart from 0,4\ngot: 0"
    assert apart in findings(diagnosis)


def test_nothing_is_said_of_a_node_once_an_answer_about_it_cannot_be_read(
    examined: Examine,
) -> None:
    diagnosis = examined(('{"ok": {"containers": self.shown(held)}}', '{"ok": {"containers": 5}}'))
    assert {one.partition(" is")[0] for one in findings(diagnosis)} == {"`containers`"}


def test_output_of_any_text_is_one_mistake(examined: Examine) -> None:
    diagnosis = examined((PRINTED, f'print("doing", request["op"])\n        {PRINTED}'))
    assert len(diagnosis.next_steps) == 2


def test_the_time_that_reading_takes_is_not_the_programs(
    examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(line: bytes, number: int, operation: str) -> lines.ReadLine:
        time.sleep(0.3)
        return lines.read(line, number, operation)

    monkeypatch.setattr(program_module, "lines", SimpleNamespace(read=read))
    diagnosis = examined(('["start", "admit", "remove", "state"]', '["start"]'), NO_FEATURES)
    assert max(one.seconds for one in diagnosis.exchanges[1:3]) < 0.3


def test_a_program_that_ends_is_quoted_in_what_to_do_next(examined_text: Examine) -> None:
    diagnosis = examined_text("import sys; sys.exit('needs an argument')")
    assert "its standard error ends with: needs an argument" in diagnosis.next_steps[0]


def test_a_missing_interpreter_is_told_by_its_exit_code(examined_text: Examine) -> None:
    diagnosis = examined_text("import sys; sys.exit(127)")
    assert "look at the program's first line" in diagnosis.next_steps[0]


def test_a_fault_is_one_finding(examined: Examine) -> None:
    diagnosis = examined(
        ('return {"ok": {}}', 'return {"fault": {"message": "not yet"}}'),
    )
    removal = next(one for one in diagnosis.exchanges if one.step == "remove")
    assert [one.wrong for one in removal.findings] == ["the answer is a fault: not yet"]


def test_an_unknown_reason_is_advice_below_the_level_that_compares_it(examined: Examine) -> None:
    diagnosis = examined(('"reason": "UnexpectedAdmissionError"', '"reason": "OutOfcpu"'))
    assert diagnosis.healthy
    assert "no document has the reason 'OutOfcpu'" in findings(diagnosis)


def test_a_malformed_pool_is_no_empty_pool(examined: Examine) -> None:
    diagnosis = examined(('{"shared": listed(self.shared())', '{"shared": None'))
    assert {one.partition(";")[0] for one in findings(diagnosis)} == {"`shared` is null"}
