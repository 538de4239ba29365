"""A limit on the time of a run reaches into every call."""

from __future__ import annotations

import sys
import time

import pytest

from numaproof.conformance.execution.implementation import (
    InProcess,
    TimedOut,
    Watched,
    hello_args,
)
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.fuzzing.interrupts import OutOfTimeError, TimeLimit, limited
from numaproof.reference.implementation import Reference

HELLO = hello_args("tests")
SILENT = (sys.executable, "-c", "import sys; sys.stdin.read()")


def test_no_call_is_made_after_the_limit() -> None:
    now = 0.0
    limit = TimeLimit(lambda: now, 2.0)
    reference = limited(InProcess(Reference), limit)
    assert not isinstance(reference, Watched)
    assert reference.call("hello", HELLO)
    now = 2.0
    with pytest.raises(OutOfTimeError):
        reference.call("hello", HELLO)
    limit.until = 3.0
    assert reference.call("hello", HELLO)


def test_a_call_that_the_limit_ends_is_no_time_out_of_the_program() -> None:
    program = Subprocess(SILENT, 60.0)
    silent = limited(program, TimeLimit(time.monotonic, time.monotonic() + 0.2))
    assert isinstance(silent, Watched)
    with pytest.raises(OutOfTimeError):
        silent.call("hello", HELLO)
    silent.close()
    assert silent.left == ()


def test_a_program_that_is_too_slow_in_time_is_a_time_out() -> None:
    silent = limited(Subprocess(SILENT, 0.2), TimeLimit(lambda: 0.0, 60.0))
    with pytest.raises(TimedOut, match="no answer to hello"):
        silent.call("hello", HELLO)
