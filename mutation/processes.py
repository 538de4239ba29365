"""The process of `judge.py` as the workers see it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree import SourceTree

JUDGE = Path(__file__).resolve().with_name("judge.py")

TIME_OUT = "time-out: "
CRASH = "crash: "
NOTHING = "nothing"

_LONGEST = 3600
"""Seconds on the clock after which a child is given up; processor time has ended it long before."""


class JudgeError(Exception):
    """The checks fail without any mutation, or can't be made; the message says which."""


@dataclass(frozen=True)
class CheckResult:
    """Whether a mutation was killed, and by which check."""

    killed: bool
    by: str


def environment(tree: SourceTree, package: Path) -> dict[str, str]:
    """What the processes see: the package first on the path, and nothing that differs by place."""
    foreign = ("COVERAGE", "PYTEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {
        "PYTHONPATH": str(package),
        "PYTHONHASHSEED": "0",
        # The same figures everywhere: with the tests and recordings that the project brings.
        "NUMAPROOF_SHARED": str(tree.folder / "none"),
    }


def survey(tree: SourceTree, pattern: str, file: Path) -> None:
    """Writes what each check costs and reaches; `Reach.read` reads it.

    Raises:
        JudgeError: a check fails.
    """
    partial = file.with_suffix(".partial")
    command = [sys.executable, str(JUDGE), "survey", pattern, str(partial)]
    ended = subprocess.run(  # noqa: S603 - our own program
        command,
        cwd=tree.folder,
        env=environment(tree, tree.folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise JudgeError(ended.stderr[-3000:])
    partial.replace(file)


class Judge:
    """A process that tells of one package, as it is on disk, whether checks pass."""

    def __init__(self, tree: SourceTree, package: Path) -> None:
        self._tree, self._package = tree, package
        self._folder = tempfile.TemporaryDirectory(prefix="numaproof-mutation-")
        self._process = self._start()

    def verdict(self, plan: list[tuple[float, str]]) -> CheckResult:
        """What a plan's checks say.

        Raises:
            JudgeError: the process ended.
        """
        file, output = (Path(self._folder.name) / name for name in ("plan", "output"))
        file.write_text("".join(f"{limit:g} {name}\n" for limit, name in plan), encoding="utf-8")
        output.write_bytes(b"")
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{file} {output}\n")
        self._process.stdin.flush()
        late = threading.Timer(_LONGEST, self.kill)
        late.start()
        answer = self._process.stdout.readline()
        late.cancel()
        *_, last = ["", *output.read_text(encoding="utf-8", errors="replace").splitlines()]
        if not answer:
            if self._process.wait() == -signal.SIGKILL:
                self._process = self._start()
                return CheckResult(killed=True, by=TIME_OUT + last)
            raise JudgeError("the process that checks mutations ended")
        return outcome(int(answer), last)

    def close(self) -> None:
        """Ends the process and what it has started."""
        self.kill()
        self._process.communicate()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, str(JUDGE), "serve"],
            cwd=self._tree.folder,
            # Mutations come faster than times of files tell them apart.
            env=environment(self._tree, self._package) | {"PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


def outcome(code: int, last: str) -> CheckResult:
    """What a child's exit code and its last line say."""
    if code == 0:
        return CheckResult(killed=False, by=NOTHING)
    if code == -signal.SIGPROF:
        return CheckResult(killed=True, by=TIME_OUT + last)
    if code < 0 or not last.startswith("FAILED "):
        return CheckResult(killed=True, by=CRASH + last)
    return CheckResult(killed=True, by=last.removeprefix("FAILED "))
