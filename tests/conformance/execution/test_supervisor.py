"""Everything that a program starts ends with it, however it tries to escape."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from numaproof.conformance.execution.programs import process as programs
from numaproof.conformance.execution.programs.process import Process, ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PRELUDE = """
import os, signal, sys, time
held = os.open(sys.argv[1], os.O_WRONLY)
def child(body, leave=False):
    if os.fork() == 0:
        if leave:
            os.setsid()
        body()
        os._exit(0)
def stay():
    while True: time.sleep(1000)
def ready():
    os.write(1, b"ready\\n")
"""

ESCAPES = yaml.safe_load(Path(__file__).with_name("escapes.yaml").read_text("utf-8"))


class LifePipe:
    """Detects whether any process of a program lives, with a pipe that they all inherit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "held"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def is_released(self, seconds: float = 0.0) -> bool:
        """Returns whether no process holds it, now or within a time."""
        if seconds:
            select.select([self._reader], [], [], seconds)
        try:
            return os.read(self._reader, 1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def life_pipe(tmp_path: Path) -> Iterator[LifePipe]:
    made = LifePipe(tmp_path)
    yield made
    made.close()


@pytest.fixture
def start_program(tmp_path: Path, life_pipe: LifePipe) -> Iterator[Callable[[str], Process]]:
    """Starts a program from its body, and waits until it is ready."""
    made: list[Process] = []

    def start(body: str) -> Process:
        file = tmp_path / "program.py"
        file.write_text(f"{PRELUDE}{textwrap.dedent(body)}\nready()\nstay()\n")
        made.append(Process((sys.executable, "-S", str(file), str(life_pipe.path))))
        assert select.select([made[-1].supervision.streams[1]], [], [], 30)[0]
        return made[-1]

    yield start
    for one in made:
        one.kill()


@pytest.mark.parametrize("body", ESCAPES.values(), ids=ESCAPES)
def test_everything_a_program_started_ends_with_it(
    body: str, start_program: Callable[[str], Process], life_pipe: LifePipe
) -> None:
    process = start_program(body)
    assert not life_pipe.is_released()
    process.kill()
    assert life_pipe.is_released()
    assert process.supervision.leftover_processes == ()


def test_left_over_processes_are_named_by_command_line(
    start_program: Callable[[str], Process],
) -> None:
    process = start_program("child(stay, leave=True); ready(); os._exit(3)")
    process.wait(30)
    assert process.returncode == 3
    process.kill()
    assert len(process.supervision.found_processes) == 1
    assert process.supervision.found_processes[0].startswith(f"{sys.executable} -S ")


@pytest.mark.parametrize("seconds", [60.0, 0.0], ids=["goes on", "is killed"])
def test_stopping_the_supervisor_ends_its_program(
    start_program: Callable[[str], Process],
    life_pipe: LifePipe,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
) -> None:
    monkeypatch.setattr(programs, "ENDING", seconds)
    process = start_program("os.kill(os.getppid(), signal.SIGSTOP); child(stay, leave=True)")
    process.kill()
    assert life_pipe.is_released()


def test_programs_end_if_the_harness_is_killed(tmp_path: Path, life_pipe: LifePipe) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{PRELUDE}\nchild(stay, leave=True)\nready()\nstay()\n")
    harness = f"""
import select, sys
from numaproof.conformance.execution.programs.process import Process
process = Process((sys.executable, "-S", {str(program)!r}, {str(life_pipe.path)!r}))
select.select([process.supervision.streams[1]], [], [])
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", harness], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == b"ready\n"
        running.kill()
    assert life_pipe.is_released(30)


def test_the_embedding_programs_children_are_left_alone(
    start_program: Callable[[str], Process],
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        start_program("child(stay, leave=True)").kill()
        assert other.poll() is None
        assert other.stdin
        other.stdin.close()
        assert other.wait(30) == 0


def test_a_program_is_started_as_if_by_the_harness_itself(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    shell = f'echo "$1 $0 $PPID" > {seen}; trap > {seen}.traps; ls -l /proc/$$/fd > {seen}.open'
    process = Process(("sh", "-c", shell, "zero", "one two"), {**os.environ, "LANG": "C"})
    process.wait(30)
    assert process.returncode == 0
    process.kill()
    assert seen.read_text().startswith("one two zero ")
    assert Path(f"{seen}.traps").read_text() == ""
    assert "socket" not in Path(f"{seen}.open").read_text()


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (-9, "signal SIGKILL"), (-34, "signal SIGRTMIN"), (-40, "signal 40")],
)
def test_every_way_to_end_is_described(code: int, words: str) -> None:
    assert ending(code) == words


def wait_for_exit(pid: int) -> None:
    """Waits for the end of a process."""
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        assert select.select([process], [], [], 30)[0]
        os.close(process)


def test_processes_that_cannot_be_killed_are_named(
    start_program: Callable[[str], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start_program(
        "child(stay, leave=True); ready(); os.kill(os.getppid(), signal.SIGKILL)"
    )
    process.wait(30)
    assert process.supervision.supervisor_killed
    wait_for_exit(process.supervision.pid)
    kill = os.kill
    monkeypatch.setattr(programs, "MAX_ROUNDS", 1)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    process.kill()
    monkeypatch.setattr(os, "kill", kill)
    assert process.supervision.leftover_processes
    for pid, name in (one.split(" ", 1) for one in process.supervision.leftover_processes):
        assert name.startswith(f"{sys.executable} -S ")
        os.kill(int(pid), signal.SIGKILL)
