"""Makes the calls of `calls.yaml` to a program, and judges nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import msgspec

from numaproof import fakesys
from numaproof.conformance import releases, tables
from numaproof.conformance.implementation import introduce
from numaproof.conformance.machines import Machine
from numaproof.conformance.playing import Playing, Target
from numaproof.conformance.scratch import scratch_folder
from numaproof.conformance.subprocesses import Subprocess

FILE = Path(__file__).with_name("calls.yaml")
TIMEOUT = 15.0


def play(command: str) -> None:
    """Plays every case of the file that is for the release of the program.

    Without `state` among what it claims there is nothing that invariants could be checked on.
    """
    program = Subprocess(shlex.split(command), TIMEOUT)
    hello = introduce(program, "reach")
    unwatched = tuple(name for name in hello.operations if name != "state")
    hello = msgspec.structs.replace(hello, operations=unwatched)
    target = Target(program, hello, hello.kubernetes[-1], "invariants")
    with scratch_folder() as scratch:
        for case in tables.read_file(FILE):
            if not releases.includes(case.kubernetes, target.kubernetes):
                continue
            machine = case.machine
            if machine is None:
                (name,) = case.machines.names
                machine = Machine(fakesys.load_profile(name), scratch).info
            assert machine is not None
            verdict = Playing(target, case, machine, None, scratch / case.id).play()
            sys.stdout.write(f"{case.id}: {verdict.outcome} {verdict.message}\n")
    program.close()


if __name__ == "__main__":
    play(sys.argv[1])
