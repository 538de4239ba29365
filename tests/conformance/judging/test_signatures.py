"""What is one failure and what are two."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from numaproof.conformance.judging.finding import Finding
from numaproof.conformance.judging.signatures import Ended, signature
from numaproof.protocol.events import GOOD

GO = """panic: runtime error: index out of range [3] with length 2

goroutine 1 [running]:
panic({0x1a2b, 0xc0000})
\t/usr/lib/go/src/runtime/panic.go:770 +0x132
example.com/driver/topology.(*Merger).Merge(0xc000012, {0x1, 0x2})
\t/home/me/driver/merge.go:41 +0x1d
main.main()
\t/home/me/driver/main.go:9 +0x25
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: no CPU 7 in [0, 1]
\tat org.example.Pool.take(Pool.java:31)
\tat org.example.Main.main(Main.java:12)
"""
NODE = """/srv/driver.js:12
TypeError: Cannot read properties of undefined (reading 'cpus')
    at allocate (/srv/driver.js:12:9)
    at Interface.<anonymous> (/srv/driver.js:40:3)
"""
RUST = "thread 'main' panicked at src/pool.rs:12:5:\nindex out of bounds: the len is 1\n"


def fail(finding: Finding, operation: str = "admit", *invariants: str) -> str:
    return signature(Ended("fail", finding=finding), operation, invariants)


def crash(trace: str, ending: str = "exit code 2") -> str:
    return signature(Ended("crash", words="it ended", ending=ending, stderr=trace), "admit")


expected = partial(Finding, "expectation")
reference = partial(Finding, "reference", kind="field")
side = partial(Finding, "other side", kind="field")


@pytest.mark.parametrize(
    ("finding", "sentence", "name"),
    [
        (
            reference("containers.app.cpus", "", "4-7", "0-3"),
            "differs from the reference: containers.app.cpus\nexpected: 4-7\ngot: 0-3",
            "containers.*.cpus differs",
        ),
        (
            side("containers.app.devices.x", "", '["d0"]', '["d0", "d0"]', remark=" (twice)"),
            'containers.app.devices.x (twice) differs\nexpected: ["d0"]\ngot: ["d0", "d0"]',
            "containers.*.devices.* differs",
        ),
        (
            Finding("other side", "containers.app", "", "(absent)", "{}", "field on one side"),
            "containers.app differs\nexpected: (absent)\ngot: {}",
            "containers.* is only on one side",
        ),
        (
            reference("files.memory_manager_state.entries.a", "", "1", "2"),
            "differs from the reference: files.memory_manager_state.entries.a\nexpected: 1\ngot: 2",
            "files.memory_manager_state differs",
        ),
        (
            reference("pods.uid-a.app.affinity.numa", "", "[0]", "null"),
            "differs from the reference: pods.uid-a.app.affinity.numa\nexpected: [0]\ngot: null",
            "pods.*.affinity.numa differs",
        ),
        (
            Finding("reference", "the outcome", "", "accepted", "a fault", "outcome"),
            "differs from the reference: the outcome\nexpected: accepted\ngot: a fault",
            "a fault against accepted",
        ),
        (
            Finding("reference", "nodes", "8", "0,8", "0-1"),
            "differs from the reference: nodes of 8\nexpected: 0,8\ngot: 0-1",
            "nodes not as expected",
        ),
        (
            expected("the outcome", actual="X", kind="refused", text="no 3 CPUs"),
            "the outcome\nexpected: success\ngot: refused with X (no 3 CPUs)",
            "refused with X, expected success",
        ),
        (
            Finding("expectation", "the outcome", "", "Y", "X", "refused otherwise", text="no"),
            "the outcome\nexpected: a refusal with Y\ngot: refused with X (no)",
            "refused with X, expected Y",
        ),
        (
            expected("the outcome", "", "Y", "", "refused otherwise", text="no 3 CPUs"),
            "the outcome\nexpected: a refusal with Y\ngot: refused with  (no 3 CPUs)",
            "refused with (no # CPUs): expected Y",
        ),
        (
            expected("the outcome", expected="Y", kind="accepted"),
            "the outcome\nexpected: a refusal with Y\ngot: accepted",
            "accepted: expected a refusal with Y",
        ),
        (
            expected("exclusive CPUs", "a/app", "3 CPUs", "2 CPUs (0-1)"),
            "exclusive CPUs of a/app\nexpected: 3 CPUs\ngot: 2 CPUs (0-1)",
            "exclusive CPUs not as expected",
        ),
        (
            expected("example.com/gpu", "app", '["d0"]', '["d1"]', remark=" (twice)"),
            'example.com/gpu of app (twice)\nexpected: ["d0"]\ngot: ["d1"]',
            "devices not as expected",
        ),
        (
            expected("hints of cpu", "", "{}", '{"cpu": null}', "hints"),
            'hints of cpu\nexpected: {}\ngot: {"cpu": null}',
            "hints of cpu",
        ),
        (
            expected("machine.nodes.8.cpus", "", "0-1", "0-1,6-7"),
            "machine.nodes.8.cpus\nexpected: 0-1\ngot: 0-1,6-7",
            "machine.nodes.*.cpus not as expected",
        ),
        (
            expected("machine.nodes", expected="8", kind="no field"),
            "machine.nodes has no 8",
            "machine.nodes not as expected",
        ),
        (
            expected("a container", "a/app", kind="no container"),
            "there is no container a/app in the answer",
            "a container is missing",
        ),
        (
            expected("cpu_manager_state", kind="no file"),
            "there is no file cpu_manager_state",
            "there is no file cpu_manager_state",
        ),
        (
            expected("cpu_manager_state", kind="no JSON", text="line 1"),
            "cpu_manager_state is not JSON: line 1",
            "cpu_manager_state is not JSON not as expected",
        ),
        (
            expected("the CFS quota", "app", kind="not included"),
            "the CFS quota of app is not told, though the start asked for it",
            "the CFS quota not as expected",
        ),
        (
            expected("the refused pod", kind="not included"),
            "the refused pod is not told, though the start asked for it",
            "the refused pod is not told, though the start asked for it not as expected",
        ),
        (
            Finding("node", "more than 9 entries", kind="statement", text="more than 9 entries: x"),
            "more than 9 entries: x",
            "more than # entries not as expected",
        ),
        (
            Finding("invariant", "exclusive-to-one", kind="invariant", text="0 is twice"),
            "0 is twice [exclusive-to-one]",
            "invariant exclusive-to-one",
        ),
    ],
)
def test_sentence_and_signature_are_made_of_the_same_fields(
    finding: Finding, sentence: str, name: str
) -> None:
    assert str(finding) == sentence
    assert fail(finding) == f"admit: {name}"


def test_the_operation_and_the_outcome_make_a_difference() -> None:
    cpus = expected("the shared pool", "", "0-7", "0-3")
    whole = {
        fail(cpus),
        fail(cpus, "start"),
        signature(Ended("nondeterministic", finding=cpus), "admit"),
        signature(Ended("time-out", words="no answer to admit within 1 s"), "admit"),
        crash(""),
    }
    assert len(whole) == 5


def test_a_broken_invariant_is_the_cause_before_anything_else() -> None:
    found = fail(reference("a"), "state", "exclusive-to-one", "no-cpu-lost")
    assert found == "invariant exclusive-to-one"


def test_a_fault_on_one_side_is_known_by_what_differs() -> None:
    found = Finding("other side", "the outcome", "", "accepted", "a fault", "outcome")
    known = signature(Ended("fault", finding=found), "admit")
    assert known == "fault at admit: the outcome differs expected: accepted got: a fault"


@pytest.mark.parametrize("outcome", sorted(GOOD))
def test_what_is_no_failure_has_none(outcome: str) -> None:
    assert signature(Ended(outcome), "admit") == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (GO, ("exit code 2, panic: runtime error: index out of range # with length # in"
         " topology.(*Merger).Merge")),
        (JAVA, ("exit code 2, Exception in thread '…' java.lang.IllegalStateException:"
         " no CPU # in # in org.example.Pool.take")),
        (NODE, ("exit code 2, TypeError: Cannot read properties of undefined (reading '…')"
         " in allocate")),
        (RUST, "exit code 2, thread '…' panicked at src/pool.rs:#:#: in pool.rs"),
        ("2026-11-01 12:00:00 started\n", "exit code 2"),
    ],
)  # fmt: skip
def test_a_crash_is_known_by_its_exit_its_last_words_and_the_innermost_function(
    trace: str, words: str
) -> None:
    assert crash(trace) == f"crash at admit: {words}"[:160]


def test_a_python_program_is_known_by_its_last_exception_on_every_version() -> None:
    code = "def take(cpus): return cpus['a']\nfor _ in [0]:\n  try: take({})\n  except KeyError:"
    text = f"{code} raise RuntimeError('no CPU 7')\n"
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    found = crash(ended.stderr.decode(), "exit code 1")
    assert found == "crash at admit: exit code 1, RuntimeError: no CPU # in <module>"


def test_a_fault_is_known_by_its_message_and_the_function() -> None:
    trace = 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in take\n    boom\n'
    found = signature(Ended("fault", words="KeyError: 'a'", stderr=trace), "remove")
    assert found == "fault at remove: KeyError: '…' in take"


def test_a_protocol_error_is_known_by_its_words_without_their_numbers() -> None:
    words = "a line is longer than 9 bytes"
    found = signature(Ended("protocol error", words=words), "start")
    assert found == "protocol error at start: a line is longer than # bytes"


def test_a_defect_that_does_not_show_is_known_by_its_name() -> None:
    found = signature(Ended("missing expected failure", defect="a-defect"), "state")
    assert found == "missing expected failure: a-defect"


def test_a_long_text_is_cut() -> None:
    assert len(crash(f"panic: {'too long ' * 100}")) <= 160
