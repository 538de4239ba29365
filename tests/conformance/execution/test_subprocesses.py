"""Programs that misbehave are reported as exactly what they did."""

from __future__ import annotations

import os
import re
import select
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    CannotStartError,
    Crashed,
    ImplementationFailure,
    TimedOut,
    handshake,
)
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.judging.logs import STDERR_KEPT
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from pathlib import Path

HELLO = messages.Hello(
    protocol=1,
    name="toy",
    version="1",
    language="Python",
    kubernetes=("1.35",),
    level="invariants",
    operations=("start",),
    policies=messages.Policies(),
    options=messages.Options(),
)

PRELUDE = """
import json, os, sys, time
hello = json.loads(HELLO)
def read():
    return json.loads(sys.stdin.readline())
def say(text):
    sys.stdout.write(text); sys.stdout.flush()
def answer(request, **body):
    say(json.dumps({"id": request["id"], **body}) + "\\n")
"""


Program = Callable[..., Subprocess]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Makes subprocesses that run a small Python program with `read`, `say` and `answer`."""
    made: list[Subprocess] = []

    def make(body: str, timeout: float = 20.0) -> Subprocess:
        file = tmp_path / "program.py"
        constant = f"HELLO = {codec.encode(HELLO).decode()!r}\n"
        file.write_text(constant + PRELUDE + textwrap.dedent(body))
        made.append(Subprocess([sys.executable, "-S", str(file)], timeout))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ask(one: Subprocess) -> messages.Answer:
    return one.call("state", messages.NoArgs())


def test_an_answer_comes_back_as_the_message_that_it_is(program: Program) -> None:
    one = program("answer(read(), ok={'shared': '0-3', 'pods': {}})\nread()")
    assert ask(one) == messages.State(shared=messages.CPUSet.parse("0-3"), pods={})


def test_an_exit_is_a_crash_with_its_code_and_the_end_of_its_log(program: Program) -> None:
    one = program("read(); sys.stderr.write('out of luck'); sys.exit(7)")
    with pytest.raises(Crashed, match="ended at state with exit code 7") as caught:
        ask(one)
    assert caught.value.stderr == "out of luck"


def test_a_signal_is_a_crash_with_its_name(program: Program) -> None:
    one = program("read(); os.kill(os.getpid(), 11)")
    with pytest.raises(Crashed, match="signal SIGSEGV"):
        ask(one)


def test_a_closed_output_is_told_from_a_death(program: Program) -> None:
    one = program("read(); os.close(1); time.sleep(60)")
    with pytest.raises(Crashed) as caught:
        ask(one)
    assert str(caught.value) == "the program closed its standard output at state and ran on"


def test_a_program_that_kills_its_supervisor_is_named_for_it(program: Program) -> None:
    one = program("""
    read()
    if os.fork() == 0:  # it has the output open
        os.setsid(); time.sleep(60)
    os.kill(os.getppid(), 9); time.sleep(60)
    """)
    with pytest.raises(Crashed, match="killed its supervisor, numaproof's own process, at state"):
        ask(one)


def test_silence_after_a_death_tells_of_what_holds_the_output_open(program: Program) -> None:
    one = program("read(); os.fork() or time.sleep(60); sys.exit(3)", 2.0)
    with pytest.raises(TimedOut, match="ended with exit code 3, but not what it started"):
        ask(one)


def test_death_at_start_is_a_crash(program: Program) -> None:
    one = program("sys.exit('no licence')")
    with pytest.raises(Crashed, match="exit code 1") as caught:
        handshake(one, "test")
    assert "no licence" in caught.value.stderr


def test_a_missing_program_cannot_be_started() -> None:
    one = Subprocess(["/nonexistent/program"], 1.0)
    with pytest.raises(CannotStartError, match="No such file"):
        ask(one)


def test_silence_is_a_time_out(program: Program) -> None:
    one = program("read(); sys.stderr.write('thinking'); sys.stderr.flush(); read()", 1.0)
    with pytest.raises(TimedOut, match="no answer to state within 1 s") as caught:
        ask(one)
    assert caught.value.stderr == "thinking"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("read(); say('hello\\n')", "the line is not JSON: a value is missing"),
        ("read(); say('\\n')", "the line is empty"),
        ("request = read(); answer({'id': 99}, ok={})", "expected a response with id 1, got id 99"),
        (
            "answer(read(), ok={'shared': '0', 'pods': {}}, fault={'message': 'x'})",
            "exactly one of .*, got 2",
        ),
        ("answer(read())", "exactly one of .*, got 0"),
        ("answer(read(), ok={'shared': '0'})", "missing required field `pods`"),
        ("answer(read(), ok={'shared': '0', 'pods': {}, 'extra': 1})", "unknown field `extra`"),
        ("answer(read(), ok={'shared': '3-1', 'pods': {}})", "is reversed"),
        ("answer(read(), refused={'reason': 'no', 'message': ''})", "`state` must not be refused"),
        ("answer(read(), wrong={})", "unknown field `wrong`"),
        (
            "read(); say('{\"id\":1,\"ok\":' + '[' * 20000 + ']' * 20000 + '}\\n')",
            "nested deeper than 200 levels",
        ),
        (
            (
                "hint = {'numa': None, 'preferred': False}\n"
                "app = {'cpus': '', 'exclusive': '', 'memory': [], 'affinity': hint, 'quota': True}"
                "\nanswer(read(), ok={'shared': '0', 'pods': {'a': {'app': app}}})"
            ),
            "`pods.a.app.quota` was not asked for; leave it out unless `tell` of the start has",
        ),
    ],
)
def test_a_line_that_is_no_answer_breaks_the_protocol(
    program: Program, body: str, complaint: str
) -> None:
    one = program(body + "\nread()")
    with pytest.raises(BrokeProtocol, match=complaint):
        ask(one)


def test_output_that_nobody_asked_for_breaks_the_protocol(program: Program) -> None:
    body = """
    request = read()
    text = json.dumps({"id": request["id"], "ok": {"shared": "0", "pods": {}}}) + "\\n"
    say(text + "chatter\\n")
    read()
    """
    one = program(body)
    ask(one)
    with pytest.raises(BrokeProtocol, match="chatter"):
        ask(one)


def test_a_second_answer_to_a_request_is_blamed_on_that_request(program: Program) -> None:
    one = program(f"""
    request = read()
    answer(request, {STATE})
    read()
    answer(request, {STATE})
    read()
    """)
    ask(one)
    with pytest.raises(BrokeProtocol, match="output after its answer to state") as caught:
        one.call("reconcile", messages.NoArgs())
    assert caught.value.after_answer


STATE = 'ok={"shared": "0", "pods": {}}'


def test_a_death_after_an_answer_is_blamed_on_that_answer(program: Program) -> None:
    one = program(f"answer(read(), {STATE}); sys.stderr.write('late'); sys.exit(3)")
    ask(one)
    with pytest.raises(Crashed) as caught:
        one.call("reconcile", messages.NoArgs())
    assert str(caught.value) == "the program ended after its answer to state with exit code 3"
    assert caught.value.after_answer
    assert caught.value.stderr == "late"


def test_a_death_at_a_request_that_was_read_is_blamed_on_that_request(program: Program) -> None:
    one = program(f"answer(read(), {STATE}); read(); sys.exit(3)")
    ask(one)
    with pytest.raises(Crashed, match="ended at reconcile with exit code 3") as caught:
        one.call("reconcile", messages.NoArgs())
    assert not caught.value.after_answer


def test_the_answer_is_to_blame_however_long_the_next_request_is(program: Program) -> None:
    one = program(f"answer(read(), {STATE}); sys.exit(3)")
    ask(one)
    with pytest.raises(Crashed, match="after its answer to state"):
        one.call("admit", messages.AdmitArgs({"metadata": {"uid": "x" * (1 << 20)}}))


def test_a_program_that_hangs_after_its_answer_is_blamed_for_that_answer(
    program: Program,
) -> None:
    one = program(f"answer(read(), {STATE}); time.sleep(60)", 1.0)
    ask(one)
    with pytest.raises(TimedOut, match="read no request after its answer to state within 1 s"):
        one.call("reconcile", messages.NoArgs())


@pytest.mark.parametrize(
    ("after", "failure", "words"),
    [
        (
            "os.kill(os.getpid(), 11)",
            Crashed,
            "ended after its answer to state with signal SIGSEGV",
        ),
        ("say('chatter\\n'); read(); read()", BrokeProtocol, "after its answer to state .*chatter"),
        (
            "os.close(1); time.sleep(60)",
            Crashed,
            "closed its standard output after its answer to state and ran on",
        ),
    ],
)
def test_settling_finds_what_went_wrong_after_the_last_answer(
    program: Program, after: str, failure: type[ImplementationFailure], words: str
) -> None:
    one = program(f"answer(read(), {STATE}); {after}")
    ask(one)
    with pytest.raises(failure, match=words) as caught:
        one.settle()
    assert caught.value.after_answer


def test_a_healthy_program_outlives_its_answers(program: Program) -> None:
    one = program(f"""
    answer(read(), {STATE})
    sys.stderr.write("said before"); sys.stderr.flush()
    answer(read(), ok=hello)
    answer(read(), {STATE})
    """)
    one.settle()  # nothing runs yet
    ask(one)
    one.settle()
    assert one.log() == "said before"
    one.begin()
    assert one.log() == ""
    assert ask(one)


def test_of_a_flood_of_log_the_beginning_and_the_end_are_kept(program: Program) -> None:
    body = """
    request = read()
    sys.stderr.write("the beginning\\n")
    for _ in range(200):
        sys.stderr.write(("x" * 1023 + "\\n") * 64)
    sys.stderr.write("the end"); sys.stderr.flush()
    sys.exit(3)
    """
    one = program(body)
    with pytest.raises(Crashed) as caught:
        ask(one)
    assert len(caught.value.stderr) < 2 * STDERR_KEPT + 100
    assert caught.value.stderr.startswith("the beginning\n")
    assert re.search(r"\n\[\.\.\. 12,78\d lines left out \.\.\.\]\n", caught.value.stderr)
    assert caught.value.stderr.endswith("the end")


def test_a_line_without_end_is_given_up(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "LONGEST_ANSWER", 1 << 20)
    one = program("read()\nwhile True: say('x' * 65536)")
    with pytest.raises(BrokeProtocol, match="longer than 1048576 bytes"):
        ask(one)


def test_a_request_that_is_not_read_is_a_time_out_even_when_it_is_large(program: Program) -> None:
    one = program("time.sleep(60)", timeout=1.0)
    pod = {"metadata": {"uid": "x" * (1 << 20)}}
    with pytest.raises(TimedOut):
        one.call("admit", messages.AdmitArgs(pod))


def test_after_a_failure_the_next_call_reaches_a_fresh_process(
    program: Program, tmp_path: Path
) -> None:
    body = f"""
    marker = {str(tmp_path / "ran")!r}
    first = not os.path.exists(marker)
    open(marker, "w").close()
    request = read()
    if first:
        sys.exit(1)
    answer(request, ok={{"shared": "", "pods": {{}}}})
    read()
    """
    one = program(body)
    with pytest.raises(Crashed):
        ask(one)
    assert isinstance(ask(one), messages.State)


def test_no_process_is_left_behind_not_even_a_grandchild(program: Program, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f"""
    import subprocess
    child = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"],
                             stdin=subprocess.PIPE)
    open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
    request = read()
    answer(request, ok={{"shared": "", "pods": {{}}}})
    read()
    """
    one = program(body)
    ask(one)
    descriptors = [os.pidfd_open(int(pid)) for pid in pids.read_text().split()]
    one.close()
    for descriptor in descriptors:
        ended, _, _ = select.select([descriptor], [], [], 20.0)
        os.close(descriptor)
        assert ended


def test_a_program_may_end_by_itself_when_its_input_ends(program: Program, tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    body = f"""
    answer(read(), ok={{"shared": "", "pods": {{}}}})
    sys.stdin.read()
    open({str(tidied)!r}, "w").close()
    """
    one = program(body)
    ask(one)
    one.close()
    assert tidied.exists()


def test_a_program_that_does_not_heed_the_end_of_its_input_is_killed(program: Program) -> None:
    body = """
    answer(read(), ok={"shared": "", "pods": {}, "files": {"pid": str(os.getpid())}})
    while True: time.sleep(60)
    """
    one = program(body)
    answer = ask(one)
    assert isinstance(answer, messages.State)
    descriptor = os.pidfd_open(int(answer.files["pid"]))
    one.close()
    ended, _, _ = select.select([descriptor], [], [], 0.0)
    os.close(descriptor)
    assert ended


def test_an_implementation_of_another_protocol_is_refused(program: Program) -> None:
    one = program("answer(read(), ok={**hello, 'protocol': 2})\nread()")
    with pytest.raises(BrokeProtocol, match="speaks protocol 2"):
        handshake(one, "test")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("answer(read(), fault={'message': 'boom'})", "hello ended in a fault: boom"),
        ("answer(read(), unsupported={'what': 'hello'})", "answered with Unsupported"),
    ],
)
def test_a_greeting_must_be_answered_with_a_greeting(
    program: Program, body: str, complaint: str
) -> None:
    one = program(body + "\nread()")
    with pytest.raises((Crashed, BrokeProtocol), match=complaint):
        handshake(one, "test")
