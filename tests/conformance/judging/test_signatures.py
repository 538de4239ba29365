"""What is one failure and what are two."""

from __future__ import annotations

import subprocess
import sys

import pytest

from numaproof.conformance.execution.shown import cut
from numaproof.conformance.judging.signatures import Evidence, signature
from numaproof.protocol.events import GOOD
from numaproof.protocol.mismatch import Mismatch

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


def fail(message: str, operation: str = "admit", *invariants: str) -> str:
    return signature(Evidence("fail", message, operation, invariants))


def crash(trace: str, message: str = "the program ended at admit with exit code 2") -> str:
    return signature(Evidence("crash", message, "admit", trace=trace))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            "differs from the reference: containers.app.cpus is '0-3' against '4-7'",
            "differs from the reference: containers.db.cpus is '' against '2'",
        ),
        (
            "differs from the reference: pods.uid-a.app.affinity.numa is None against [0]",
            "differs from the reference: pods.b.init.1.affinity.numa is [1] against [0, 1]",
        ),
        (
            "differs from the reference: files.memory_manager_state is '{}' against '{\"a\": 1}'",
            "differs from the reference: files.memory_manager_state.entries.a is 1 against 2",
        ),
        ("exclusive CPUs of app (0-1): expected 3 CPUs, got 2", "exclusive CPUs of a/b (): fewer"),
        ("example.com/gpu of app: expected 2 devices, got 1", "intel.com/x of a/b: expected 1"),
        ("there is no container a/app in the answer", "there is no container db in the answer"),
        ("refused with X (no 3 CPUs): expected success", "refused with X (4): expected success"),
    ],
)
def test_names_numbers_and_values_make_no_difference(left: str, right: str) -> None:
    assert fail(left) == fail(right)


FROM_REFERENCE = "differs from the reference: "


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (
            f"{FROM_REFERENCE}containers.app.cpus is '0-3' against '4-7'",
            Mismatch(f"{FROM_REFERENCE}containers.app.cpus", "4-7", "0-3"),
        ),
        (
            "containers.app.devices.x is ['d1', 'd0'] against ['d0']",
            Mismatch("containers.app.devices.x differs", '["d0"]', '["d1", "d0"]'),
        ),
        (
            f"{FROM_REFERENCE}updates is [{{'a': 1}}] against []",
            Mismatch(f"{FROM_REFERENCE}updates (only the order differs)", "[]", '[{"a": 1}]'),
        ),
        (
            "containers.app is only on one side",
            Mismatch("containers.app differs", "(absent)", "{}"),
        ),
        (
            f"{FROM_REFERENCE}refused at stage cpu against accepted",
            Mismatch(f"{FROM_REFERENCE}the outcome", "accepted", "refused at stage cpu"),
        ),
        ("a fault against accepted", Mismatch("the outcome differs", "accepted", "a fault")),
        (
            "refused with X (no 3 CPUs): expected success",
            Mismatch("the outcome", "success", "refused with X (no 3 CPUs)"),
        ),
        (
            "refused with X (no 3 CPUs): expected Y",
            Mismatch("the outcome", "a refusal with Y", "refused with X (no 3 CPUs)"),
        ),
        (
            "accepted: expected a refusal with Y",
            Mismatch("the outcome", "a refusal with Y", "accepted"),
        ),
        (
            "exclusive CPUs of app (0-1): expected 3 CPUs, got 2",
            Mismatch("exclusive CPUs of app", "3 CPUs", "2 CPUs (0-1)"),
        ),
        (
            "example.com/gpu of app: expected ['d0'], got ['d1']",
            Mismatch("example.com/gpu of app (lists d1 more than once)", '["d0"]', '["d1"]'),
        ),
        (
            "hints of cpu: expected {'cpu': []}, got {'cpu': None}",
            Mismatch("hints of cpu", '{"cpu": []}', '{"cpu": null}'),
        ),
        ("admit: expected False, got True", Mismatch("admit", "false", "true")),
        (
            "machine.nodes.8.cpus: expected '0-1', got '0-1,6-7'",
            Mismatch("machine.nodes.8.cpus", "0-1", "0-1,6-7"),
        ),
        (
            f"{FROM_REFERENCE}nodes of 8 is '0-1' against '0,8'",
            Mismatch(f"{FROM_REFERENCE}nodes of 8", "0,8", "0-1"),
        ),
    ],
)
def test_signatures_in_older_files_of_known_failures_still_match(
    before: str, now: Mismatch
) -> None:
    assert fail(before) == fail(str(now))


def test_a_long_value_does_not_change_the_signature() -> None:
    long = Mismatch.of("hints of cpu", {"cpu": "x" * 9000}, {"cpu": "y" * 9000})
    assert (
        fail(cut(str(long))) == fail("hints of cpu: expected {}, got {}") == "admit: hints of cpu"
    )


def test_the_operation_the_outcome_and_the_kind_of_answer_do() -> None:
    whole = {
        fail("accepted: expected a refusal with SMTAlignmentError"),
        fail("accepted: expected a refusal with TopologyAffinityError"),
        fail("the shared pool (0-3): expected '0-7'"),
        fail("the shared pool (0-3): expected '0-7'", "start"),
        fail("containers.a.cpus is '' against '1'"),
        fail("containers.a.memory is [] against [1]"),
        signature(Evidence("time-out", "no answer to admit within 1 s", "admit")),
        crash(""),
    }
    assert len(whole) == 8


def test_a_broken_invariant_is_the_cause_before_anything_else() -> None:
    found = fail("differs from the reference: a", "state", "exclusive-to-one", "no-cpu-lost")
    assert found == "invariant exclusive-to-one"


@pytest.mark.parametrize("outcome", sorted(GOOD))
def test_what_is_no_failure_has_none(outcome: str) -> None:
    assert signature(Evidence(outcome, "whatever", "admit")) == ""  # type: ignore[arg-type]


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
    message = "the program ended at admit with exit code 1"
    found = crash(ended.stderr.decode(), message)
    assert found == "crash at admit: exit code 1, RuntimeError: no CPU # in <module>"


def test_a_fault_is_known_by_its_message_and_the_function() -> None:
    trace = 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in take\n    boom\n'
    found = signature(Evidence("fault", "KeyError: 'a'", "remove", trace=trace))
    assert found == "fault at remove: KeyError: '…' in take"


def test_what_stood_in_place_of_an_answer_makes_no_difference() -> None:
    ends = ("; the line was hello 1", "; the line was bye… and 7 more characters")
    one, other = (
        signature(Evidence("protocol error", f"the answer is not JSON{end}", "start"))
        for end in ends
    )
    assert one == other == "protocol error at start: the answer is not JSON"
    asked = "there was output after its answer to start that no request asked for"
    found = signature(Evidence("protocol error", f"{asked}: 'a'", "start"))
    assert found == f"protocol error at start: {asked}"


def test_a_defect_that_does_not_show_is_known_by_its_name() -> None:
    found = signature(Evidence("missing expected failure", operation="state", defect="a-defect"))
    assert found == "missing expected failure: a-defect"


def test_a_long_text_is_cut() -> None:
    assert len(crash(f"panic: {'too long ' * 100}")) <= 160
