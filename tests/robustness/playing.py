"""Plays a trial in this process with limits on time and memory, and judges its end."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import unicodedata
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch
from xml.etree import ElementTree as ET

import numaproof
from numaproof.cli.main import main
from numaproof.conformance.cases import loading
from numaproof.conformance.differential import recordings
from robustness import bases
from robustness.screens import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustness.trials import Trial

SECONDS = 10
"""The limit on a trial's processor time."""

_WALL = 60
"""Seconds without computing after which a trial counts as hanging."""

MEMORY = 1 << 30
"""How many bytes a trial may use in addition to the process's."""

_CODES = (0, 1, 2, 3)
_WRONG_INPUT = 2
_SHOWN_FILES = (".xml", ".md", ".html", ".svg", ".txt")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_LONGEST = 4000
_ENVIRONMENT = ("CI", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "NUMAPROOF_DATABASE")


class BrokenError(AssertionError):
    """A trial ended in a way it must not."""


class HangError(BaseException):
    """A trial takes too long. Error handlers don't catch it."""


@dataclass(frozen=True)
class TrialResult:
    """The end of a trial.

    Attributes:
        cause: the problem, equal for equal failures; empty if there is none.
        output: the output, and the traceback if there is one.
        code: the exit code.
    """

    cause: str
    output: str
    code: int | None


@cache
def error_type(cause: str) -> type[BrokenError]:
    """Returns an error type for each cause, so that Hypothesis distinguishes causes."""
    return type(f"BrokenError[{cause}]", (BrokenError,), {})


@contextmanager
def trial_folder() -> Iterator[Path]:
    """Yields a folder for trials, with everything preloaded that each trial would load again."""
    for module in pkgutil.walk_packages(numaproof.__path__, "numaproof."):
        if not module.name.startswith(("numaproof.plugin", "numaproof.cli.templates")):
            importlib.import_module(module.name)
    # msgspec's types can crash the process when they are collected, so keep these.
    gc.freeze()
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder in it
    with (
        patch.object(loading, "bundled_cases", cache(loading.bundled_cases)),
        patch.object(recordings, "bundled_recordings", cache(recordings.bundled_recordings)),
        patch.dict(os.environ),
        patch.object(tempfile, "tempdir", None),
        bases.without_workers(),
        tempfile.TemporaryDirectory(prefix="robustness-", dir=place) as scratch,
    ):
        for name in _ENVIRONMENT:
            os.environ.pop(name, None)
        yield Path(scratch)


def play(trial: Trial, scratch: Path) -> TrialResult:
    """Runs a trial's command in an empty folder of `scratch`."""
    here, temporary, outputs = (scratch / name for name in ("here", "tmp", "written"))
    for folder in (here, temporary, outputs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    trial.write(here)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    before = os.getcwd()  # noqa: PTH109 - to return to
    os.chdir(here)
    try:
        code, error = _run(trial, outputs)
    finally:
        os.chdir(before)
    written = [(outputs / name).read_bytes() for name in ("out", "err")]
    cause = next(_wrong(trial, code, error, scratch), "")
    parts = [ascii(one.decode(errors="replace")[:_LONGEST])[1:-1] for one in written]
    if error is not None:
        parts.append("".join(traceback.format_exception(error))[-_LONGEST:])
    return TrialResult(cause, "\n".join(one.replace("\\n", "\n") for one in parts if one), code)


@contextmanager
def _resource_limits() -> Iterator[None]:
    """Limits processor time, time, memory and the size of files."""

    def late(number: int, _frame: object) -> None:
        raise HangError(f"{SECONDS if number == signal.SIGPROF else _WALL} seconds")

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limits = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + MEMORY,
        resource.RLIMIT_FSIZE: MEMORY,
    }
    before = {one: resource.getrlimit(one) for one in limits}
    # The command installs its own handlers.
    ours = {signal.SIGPROF: late, signal.SIGALRM: late}
    numbers = (*ours, signal.SIGTERM, signal.SIGHUP)
    handlers = {one: signal.signal(one, ours.get(one, signal.SIG_DFL)) for one in numbers}
    for one, most in limits.items():
        resource.setrlimit(one, (most, before[one][1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _WALL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for one, limit in before.items():
            resource.setrlimit(one, limit)
        for one, handler in handlers.items():
            signal.signal(one, handler)


def _run(trial: Trial, outputs: Path) -> tuple[int | None, BaseException | None]:
    """Calls the entry point with its own streams; returns the exit code or the exception."""
    kept = [os.dup(number) for number in range(3)]
    streams = sys.stdin, sys.stdout, sys.stderr, sys.argv
    for number, source in enumerate((trial.stdin or os.devnull, outputs / "out", outputs / "err")):
        opened = os.open(source, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    # The terminal must be closed before its output is read to the end.
    with Screen(outputs / "out") if trial.terminal else nullcontext():
        try:
            return _call_main(trial)
        finally:
            sys.stdin, sys.stdout, sys.stderr, sys.argv = streams
            for number, one in enumerate(kept):
                os.dup2(one, number)
                os.close(one)


def _call_main(trial: Trial) -> tuple[int | None, BaseException | None]:
    """Calls the entry point with the process's own descriptors."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1
    )
    # A shell passes bytes, so invalid UTF-8 arrives as surrogates.
    args = [os.fsdecode(one.encode(errors="surrogatepass")) for one in trial.args]
    sys.argv = ["numaproof", *args]
    try:
        with _resource_limits():
            main()
    except SystemExit as ended:
        return (ended.code if isinstance(ended.code, int) else 1), None
    except BaseException as error:  # noqa: BLE001 - that is the finding
        return None, error
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return None, None


def _wrong(
    trial: Trial, code: int | None, error: BaseException | None, scratch: Path
) -> Iterator[str]:
    """Returns the problem, equal for equal failures; the worst one first."""
    here, outputs = scratch / "here", scratch / "written"
    written = {name: (outputs / name).read_bytes() for name in ("out", "err")}
    out, err = (one.decode(errors="replace") for one in written.values())
    if error is not None:
        names = {MemoryError: "memory", HangError: "hang"}
        yield f"{names.get(type(error), 'traceback')}: {_place(error)}"
    if trial.stdin:
        out, broke = _answers(out)
        yield from broke
    if "Traceback (most recent call last)" in out + err:
        yield f"traceback: in the output of {trial.args[0]}"
    if code not in _CODES:
        yield f"exit code: {code}"
    reports = (here / "numaproof-report").rglob("*")
    written |= {one.name: one.read_bytes() for one in reports if one.suffix in _SHOWN_FILES}
    for name, content in written.items():
        if hidden := _hidden_character(content):
            yield f"raw text: {hidden} in {name} of {trial.args[0]}"
    if code == _WRONG_INPUT:
        yield from _missing_names(trial, out + err)
    if "--implementation" not in trial.args and "--right" not in trial.args:
        yield from _reference_faults(here)
    yield from _leftovers(trial, scratch, code)


_RIGHT = bases.document("messages")


def _missing_names(trial: Trial, message: str) -> Iterator[str]:
    """Returns what is missing from a message about wrong input."""
    if not trial.subject or re.search("|".join(_RIGHT["of no file"]), message):
        return
    if trial.subject not in message:
        yield f"no file name: {trial.args[0]}"
        return
    has_line = rf"{re.escape(trial.subject)}(:|, line )\d"
    if trial.has_lines and not re.search("|".join((has_line, *_RIGHT["of no line"])), message):
        yield f"no line: {trial.args[0]}"


def _reference_faults(here: Path) -> Iterator[str]:
    """Faults in the reference's answers to a case, caused by the case or by numaproof."""
    for stream in (here / "numaproof-report").rglob("events.jsonl"):
        for event in map(json.loads, stream.read_bytes().splitlines()):
            answers = [step.get("answer") or {} for step in event.get("steps") or ()]
            if any("message" in one and one.keys() <= {"message", "trace"} for one in answers):
                yield "fault of the reference: in a case"


def _answers(out: str) -> tuple[str, list[str]]:
    """Reports the reference's answers, except for faults that requests deserve."""
    faults = {line: json.loads(line).get("fault", {}) for line in out.splitlines()}
    traced = {line: fault["message"] for line, fault in faults.items() if "trace" in fault}
    made = [text for text in traced.values() if not text.startswith("NotStartedError")]
    kept = "\n".join(line for line in faults if line not in traced)
    return kept, [f"traceback: fault of the reference: {one.partition(':')[0]}" for one in made]


def _leftovers(trial: Trial, scratch: Path, code: int | None) -> Iterator[str]:
    """Returns files that a command must not leave behind."""
    here = scratch / "here"
    if any((scratch / "tmp").iterdir()):
        yield f"left behind: temporary files of {trial.args[0]}"
    for path in here.rglob("*"):
        if ".partial" in path.name and path.name not in trial.files:
            yield f"left behind: {path.name} of {trial.args[0]}"
        if path.name == "junit.xml":
            try:
                ET.parse(path)  # noqa: S314 - we wrote it
            except ET.ParseError:
                yield "broken report: junit.xml"
    if trial.output_name and code == _WRONG_INPUT and (here / trial.output_name).exists():
        yield f"left behind: {trial.output_name} of {trial.args[0]}"


def _hidden_character(content: bytes) -> str:
    """Returns the first character that must not reach a terminal, if any."""
    if content.isascii() and not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", content):
        return ""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "bytes that are no UTF-8"
    for one in sorted(set(text)):
        if unicodedata.category(one) in _HIDDEN and one not in "\n\t":
            return "a control character" if ord(one) < 0xA0 else "a format character"
    return ""


def _place(error: BaseException | None) -> str:
    """Returns an error's type and the innermost line of our code."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    ours = [one for one in frames if "site-packages" not in one.filename]
    ours = [one for one in ours if "robustness" not in one.filename.rpartition("/tests/")[2]]
    at = f"{'/'.join(ours[-1].filename.split('/')[-3:])}:{ours[-1].name}" if ours else "?"
    return f"{type(error).__name__} in {at}"
