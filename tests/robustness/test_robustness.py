"""Attacks with every kind of input. Run more by hand: ``tox run -e robustness``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robustness import bases, kinds, playing
from robustness.attack import attack, error_text
from robustness.kinds import KINDS, ON, archive
from robustness.mutations import POISON, serialize
from robustness.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW = {"answer": 12, "example": 12, "finding": 20, "case": 20}
"""The number of trials for kinds that start programs or play many cases."""


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with playing.trial_folder() as folder:
        yield folder


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutated_input_breaks_the_command(scratch: Path, kind: str) -> None:
    attack(kind, scratch, seed=0, count=SLOW.get(kind, 40))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that misbehaves as its first argument says."""

    def command() -> None:
        what = playing.sys.argv[1]
        if what == "raise":
            raise LookupError(what)
        if what == "spin":
            while True:
                time.process_time()
        if what == "wait":
            time.sleep(9)
        if what == "grow":
            bytes(2 << 30)
        if what == "leave":
            Path("a.partial").touch()
        if what == "forget":
            Path(os.environ["TMPDIR"], "x").touch()
        if what == "claim":
            Path("made").touch()
        print(what)
        raise SystemExit({"wrong": 2, "claim": 2, "seven": 7}.get(what, 0))

    monkeypatch.setattr(playing, "main", command)
    monkeypatch.setattr(playing, "SECONDS", 0.2)
    monkeypatch.setattr(playing, "_WALL", 0.5)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("argument", "cause"),
    [
        ("fine", ""),
        ("raise", "traceback: LookupError in ?"),
        ("spin", "hang: "),
        ("wait", "hang: "),
        ("grow", "memory: MemoryError"),
        ("leave", "left behind: a.partial"),
        ("forget", "left behind: temporary files"),
        ("seven", "exit code: 7"),
        ("wrong", "no file name: "),
        ("claim", "no file name: "),
        ("\x1b[31m", "raw text: a control character in out"),
        ("\u202e", "raw text: a format character in out"),
    ],
)
def test_broken_commands_are_found(scratch: Path, argument: str, cause: str) -> None:
    ended = playing.play(Trial((argument,), {"f": b""}, subject="f", output_name="made"), scratch)
    assert ended.cause.startswith(cause)
    assert bool(ended.cause) == bool(cause)
    assert not playing.play(Trial(("fine",)), scratch).cause


def test_a_failure_is_shrunk_and_shows_the_mutation(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command() -> None:
        if b"cpuManagerPolicy: static" not in Path("c.yaml").read_bytes():
            raise LookupError
        raise SystemExit

    monkeypatch.setattr(playing, "main", command)
    with pytest.raises(playing.BrokenError) as caught:
        attack("configuration", scratch, seed=0, count=100)
    text = error_text(caught.value)
    assert "traceback: LookupError" in text
    assert "--only configuration:0" in text
    assert "+null" in text


def test_text_from_programs_is_never_shown_raw(scratch: Path) -> None:
    (first, hello), *others = bases.answers()
    lines = [(first, {**hello, "ok": {**hello["ok"], "name": POISON}}), *others]
    answers = b"".join(op.encode() + b"\t" + serialize(one, "line") + b"\n" for op, one in lines)
    for args in kinds.FILES["answer"].commands("answers"):
        files = {**kinds.sound_files(args), "answers": answers}
        assert playing.play(Trial(args, files, terminal=True), scratch).cause == ""


@pytest.mark.parametrize(
    "args",
    [
        *(
            (*way, POISON + ".yaml")
            for way in (("replay",), ("profile", "show"), ("config", "check", *ON), ("discover",))
        ),
        ("discover", "t.tar"),
        (POISON,),
        ("check", f"--{POISON}"),
        ("check", "--select", POISON),
    ],
    ids=lambda args: " ".join(args).replace(POISON, "hostile"),
)
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_names_are_never_shown_raw(scratch: Path, args: tuple[str, ...], terminal: bool) -> None:  # noqa: FBT001
    files = {POISON + ".yaml": b"a: [", "t.tar": archive([(f"../{POISON}", b"7\n")])}
    ended = playing.play(Trial(args, files, terminal=terminal), scratch)
    assert (ended.cause, bool(ended.code)) == ("", True)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_raw_text_would_be_detected(
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,  # noqa: FBT001
) -> None:
    for module in ("safe_streams", "console"):
        monkeypatch.setattr(f"numaproof.reports.{module}.visible", str)
    cases = bases.document("own")
    cases["cases"][0]["title"] = "\x1b[5m\u202e"
    args = ("case", "list", "--cases", "own.yaml", "own-*")
    trial = Trial(args, {"own.yaml": serialize(cases, "yaml")}, terminal=terminal)
    what = "format" if terminal else "control"
    expected = f"raw text: a {what} character in out of case"
    assert playing.play(trial, scratch).cause == expected
