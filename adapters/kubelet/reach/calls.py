"""Makes the calls in `calls.yaml` to a program, without judging the answers."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof import fakesys
from numaproof.conformance.cases import loading, releases
from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, Target
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.conformance.execution.run import RunResult

FILE = Path(__file__).with_name("calls.yaml")
TIMEOUT = 15.0

UNWRITABLE = frozenset(
    {
        "alpha-container-scope",
        "alpha-pod-scope",
        "alpha-pod-scope-all-or-none",
        "devices-of-containers",
        "devices-of-pods-as-a-whole",
        "devices-that-fall-ill",
        "memory-asked-again-for-something-else",
        "memory-of-a-group-with-a-full-node",
    }
)
"""Cases that are repeated with unwritable state files."""

_MANAGERS_OWN = ("cpu_manager_state", "memory_manager_state")
_OF_DEVICES = "device-plugins/kubelet_internal_checkpoint"


class Unwritable:
    """A program whose state files become unwritable after its managers have started.

    Directories take the place of the files. The CPU and Memory Managers can't start while their
    directories exist, so these are removed before each start.
    """

    def __init__(self, program: Implementation) -> None:
        self._program = program

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Forwards a call to the program."""
        if not isinstance(args, messages.StartArgs):
            return self._program.call(operation, args)
        files = [Path(args.state_dir, name) for name in _MANAGERS_OWN]
        for file in files:
            shutil.rmtree(file, ignore_errors=True)
        answer = self._program.call(operation, args)
        if isinstance(answer, messages.Started):
            for file in (*files, Path(args.state_dir, _OF_DEVICES)):
                if not file.is_dir():
                    file.unlink(missing_ok=True)
                    (file / "in the way").mkdir(parents=True)
        return answer

    def close(self) -> None:
        """Stops the program."""
        self._program.close()


def play(command: str) -> None:
    """Plays every case in the file that applies to the program's release.

    The program claims no `state`, so no invariants are checked.
    """
    program = Subprocess(shlex.split(command), TIMEOUT)
    hello = handshake(program, "reach")
    unwatched = tuple(name for name in hello.operations if name != "state")
    hello = msgspec.structs.replace(hello, operations=unwatched)
    target = Target(program, hello, hello.kubernetes[-1], "invariants")
    unwritable = replace(target, implementation=Unwritable(program))
    with scratch_folder() as scratch:
        for case in loading.read_file(FILE):
            if releases.includes(case.kubernetes, target.kubernetes):
                _report(case.id, _play(target, case, scratch / case.id))
                if case.id in UNWRITABLE:
                    again = f"{case.id} unwritable"
                    _report(again, _play(unwritable, case, scratch / again))
    program.close()


def _play(target: Target, case: Case, scratch: Path) -> RunResult:
    machine = case.machine
    if machine is None:
        (name,) = case.machines.names
        machine = ProfileMachine(fakesys.load_profile(name), scratch).info
    assert machine is not None
    return Run(target, case, machine, None, scratch).play()


def _report(name: str, result: RunResult) -> None:
    sys.stdout.write(f"{name}: {result.outcome} {result.message}\n")


if __name__ == "__main__":
    play(sys.argv[1])
