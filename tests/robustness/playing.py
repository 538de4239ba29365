"""Plays one trial in this process and says what is wrong with how it ended."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import re
import shutil
import sys
import tempfile
import traceback
import unicodedata
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numaproof
from numaproof.cli.main import main
from numaproof.conformance.cases import loading
from numaproof.conformance.differential import recordings
from robustness import bases
from robustness.screens import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from robustness.trials import Trial

_CODES = (0, 1, 2, 3)
_WRONG_INPUT = 2
_SHOWN_FILES = (".xml", ".md", ".html", ".svg", ".txt")
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_LONGEST = 4000
_ENVIRONMENT = ("CI", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "NUMAPROOF_DATABASE")


@dataclass(frozen=True)
class Ended:
    """How a trial ended.

    Attributes:
        problem: what is wrong with that, in a word; empty for nothing.
        detail: which one; trials with the same problem and detail have the same cause.
        told: what was seen, for a person.
        code: the exit code.
        worn_out: whether the process should not play another trial.
    """

    problem: str = ""
    detail: str = ""
    told: str = ""
    code: int = 0
    worn_out: bool = False

    @property
    def cause(self) -> str:
        """The same for trials that fail alike."""
        return f"{self.problem}: {self.detail}" if self.problem else ""


@cache
def load() -> None:
    """Loads every module of the command, so that what is forked from here has them."""
    for module in pkgutil.walk_packages(numaproof.__path__, "numaproof."):
        if not module.name.startswith(("numaproof.plugin", "numaproof.cli.templates")):
            importlib.import_module(module.name)


def prepare() -> None:
    """Lets this process load only once what every trial would load again, and start no workers."""
    # msgspec's types can end the process when they are collected; these here stay.
    gc.freeze()
    loading.bundled_cases = cache(loading.bundled_cases)
    recordings.bundled = cache(recordings.bundled)
    bases.without_workers().start()


def play(trial: Trial, scratch: Path) -> Ended:
    """Runs the command of a trial in an empty folder of `scratch`."""
    here, temporary, outputs = (scratch / name for name in ("here", "tmp", "written"))
    for folder in (here, temporary, outputs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    trial.write(here)
    for name in _ENVIRONMENT:
        os.environ.pop(name, None)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    before = os.getcwd()  # noqa: PTH109 - to return to
    os.chdir(here)
    try:
        code, error = _run(trial, outputs)
    except MemoryError:
        code, error = None, sys.exception()
    finally:
        os.chdir(before)
    found = _wrong(trial, code, error, (here, temporary, outputs))
    problem, detail = next(found, ("", ""))
    written = [(outputs / name).read_bytes() for name in ("out", "err")]
    told = _told(error, written)
    return Ended(problem, detail, told, code or 0, worn_out=isinstance(error, MemoryError))


def _run(trial: Trial, outputs: Path) -> tuple[int | None, BaseException | None]:
    """Calls the entry point with its own streams; the exit code, or what came out of it."""
    kept = [os.dup(number) for number in range(3)]
    sources = (trial.stdin or os.devnull, str(outputs / "out"), str(outputs / "err"))
    streams = sys.stdin, sys.stdout, sys.stderr
    for number, source in enumerate(sources):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        opened = os.open(source, flags)
        os.dup2(opened, number)
        os.close(opened)
    terminal = Screen(outputs / "out") if trial.terminal else nullcontext()
    with terminal:
        try:
            return _called(trial)
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            for number, one in enumerate(kept):
                os.dup2(one, number)
                os.close(one)


def _called(trial: Trial) -> tuple[int | None, BaseException | None]:
    """Calls the entry point on the process's own descriptors."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1
    )
    # What a shell passes: bytes that are no UTF-8 arrive as surrogates.
    args = [os.fsdecode(one.encode(errors="surrogatepass")) for one in trial.args]
    sys.argv = ["numaproof", *args]
    try:
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
    trial: Trial, code: int | None, error: BaseException | None, places: tuple[Path, Path, Path]
) -> Iterator[tuple[str, str]]:
    """What is wrong, and which one of its kind; the worst comes first."""
    here, temporary, outputs = places
    written = [(outputs / name).read_bytes() for name in ("out", "err")]
    out, err = (one.decode(errors="replace") for one in written)
    if error is not None:
        yield "memory" if isinstance(error, MemoryError) else "traceback", _place(error)
    if trial.stdin:
        out, broken = _faults(out)
        if broken:
            yield "traceback", broken
    if "Traceback (most recent call last)" in out + err:
        yield "traceback", "in the output: " + (out + err).strip().splitlines()[-1][:80]
    if code not in _CODES:
        yield "exit code", str(code)
    for name, content in (("stdout", written[0]), ("stderr", written[1]), *_reports(here)):
        if hidden := _hidden(content):
            yield "raw text", f"{hidden} in {name} of {_command(trial)}"
    if code == _WRONG_INPUT:
        yield from _unnamed(trial, err)
    if "--implementation" not in trial.args and "--right" not in trial.args:
        yield from _blamed(here)
    yield from _left(trial, here, temporary, code)


_OF_ARGUMENTS = re.compile(
    r"brings its own machine: leave out --machine|no case has the id '"
    r"|nothing was tested: no case ran, or none is supported"
    r"|no case in \S+ applies to Kubernetes|no case matches --select"
    r"|none of the selected cases applies to these machines"
    r"|does not run on \S+; it runs on"
)
"""Messages about what else was asked for, or about the run: a trial's file is right."""

_OF_NO_LINE = re.compile(
    r"has \d+ cases; expected one|not an xz file: |unpacks to more than [\d,]+ bytes"
    r"|: there is nothing in it|: larger than [\d,]+ bytes"
    r"|was recorded on Kubernetes [^,]+, not"
    r"|expected one KubeletConfiguration, got \d+ documents|no pods in \S+; name manifests"
    r"|the reference makes none of its calls|is known to answer this otherwise: name the --defect"
    r"|brings no machine of its own: write it as a case"
)
"""Messages about a file as a whole, of which no line is more wrong than another."""


def _unnamed(trial: Trial, err: str) -> Iterator[tuple[str, str]]:
    """What a message about wrong input does not say."""
    if not trial.subject or _OF_ARGUMENTS.search(err):
        return
    if trial.subject not in err:
        yield "no file name", f"{_command(trial)}: {_pattern(err)}"
        return
    has_line = re.search(rf"{re.escape(trial.subject)}(:|, line )\d", err)
    if trial.has_lines and not has_line and not _OF_NO_LINE.search(err):
        yield "no line", f"{_command(trial)}: {_pattern(err)}"


def _blamed(here: Path) -> Iterator[tuple[str, str]]:
    """Faults of the reference in answers to a case: what is wrong is the case, or numaproof."""
    for stream in (here / "numaproof-report").rglob("events.jsonl"):
        for event in map(json.loads, stream.read_bytes().splitlines()):
            for step in event.get("steps") or ():
                answer = step.get("answer") or {}
                if "message" in answer and answer.keys() <= {"message", "trace"}:
                    yield "fault of the reference", _pattern(answer["message"])


def _faults(out: str) -> tuple[str, str]:
    """The answers of the reference without faults that requests deserve, and one that it made."""
    kept = []
    for line in out.splitlines():
        fault = json.loads(line).get("fault", {})
        if "trace" not in fault:
            kept.append(line)
        elif not fault["message"].startswith("NotStartedError"):
            place = fault["trace"].strip().splitlines()[-2].strip()
            return out, f"fault of the reference: {fault['message'].partition(':')[0]}, {place}"
    return "\n".join(kept), ""


def _left(trial: Trial, here: Path, temporary: Path, code: int | None) -> Iterator[tuple[str, str]]:
    """What a command left behind that it should not have."""
    for path in temporary.iterdir():
        yield "left behind", f"{_pattern(path.name)} in the temporary folder: {_command(trial)}"
    for path in here.rglob("*"):
        if ".partial" in path.name and path.name not in trial.files:
            yield "left behind", f"{path.name} of {_command(trial)}"
        if path.name == "junit.xml":
            try:
                ET.parse(path)  # noqa: S314 - we wrote it
            except ET.ParseError as error:
                yield "broken report", f"junit.xml: {error.msg.partition(':')[0]}"
    if trial.made and code == _WRONG_INPUT and (here / trial.made).exists():
        yield "left behind", f"{trial.made} of {_command(trial)}"


def _reports(here: Path) -> Iterator[tuple[str, bytes]]:
    for path in (here / "numaproof-report").rglob("*"):
        if path.suffix in _SHOWN_FILES:
            yield path.name, path.read_bytes()


def _hidden(content: bytes) -> str:
    """The first character that no terminal should get, if there is any."""
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
    """The type of an error and the innermost line of ours on its way."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    ours = [one for one in frames if "site-packages" not in one.filename]
    ours = [one for one in ours if "robustness" not in one.filename.rpartition("/tests/")[2]]
    at = f"{'/'.join(ours[-1].filename.split('/')[-3:])}:{ours[-1].name}" if ours else "?"
    return f"{type(error).__name__} in {at}"


def _command(trial: Trial) -> str:
    return " ".join(trial.args[:2]) if trial.args[0] in _GROUPS else trial.args[0]


_GROUPS = ("case", "profile", "state", "config")


def _pattern(text: str) -> str:
    """A message without what differs from one to the next."""
    lines = [one for one in text.strip().splitlines() if not one.startswith(("Usage:", "Try "))]
    first = next((one for one in lines if one), "")
    first = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\([^()]*\)", "…", first)
    return re.sub(r"\d+|[a-z0-9_]{8}(?=$)", "N", first)[:90]


def _told(error: BaseException | None, written: list[bytes]) -> str:
    parts = [ascii(one.decode(errors="replace")[:_LONGEST])[1:-1] for one in written]
    if error is not None:
        lines = traceback.format_exception(error)
        parts.append(ascii("".join(lines)[-_LONGEST:])[1:-1])
    return "\n".join(one.replace("\\n", "\n") for one in parts if one)
