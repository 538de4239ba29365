"""Seeded attacks with every kind of input; by hand: ``tox run -e robustness -- --count 20000``."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robustness import kinds, nodes, playing
from robustness.__main__ import describe
from robustness.playing import Ended
from robustness.shrinking import shrunk
from robustness.trials import Document, Text, Trial
from robustness.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 200
"""Trials of each kind."""

FEW = 12
"""Of these, so many are also made where the slow tests are left out."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as opened:
        yield opened


def failures(worker: Worker, kind: str, seeds: range) -> list[str]:
    """The failures of these trials, shrunk; each cause once."""
    found: dict[str, str] = {}
    for seed in seeds:
        trial = kinds.trial(f"{kind}:{seed}")
        ended = worker.play(trial)
        if ended.problem and ended.cause not in found:
            found[ended.cause] = describe(shrunk(trial, ended.cause, worker.play), ended)
    return list(found.values())


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_few_mutated_inputs_break_no_command(worker: Worker, kind: str) -> None:
    assert failures(worker, kind, range(FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_no_mutated_input_breaks_the_command(worker: Worker, kind: str) -> None:
    assert failures(worker, kind, range(FEW, COUNT)) == []


def test_a_name_makes_the_same_trial_again() -> None:
    for kind in kinds.KINDS:
        assert kinds.trial(f"{kind}:7") == kinds.trial(f"{kind}:7")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose command does what the first argument says."""

    def command() -> None:
        what = playing.sys.argv[1]
        if what == "raise":
            raise LookupError(what)
        if what == "spin":
            while True:
                time.process_time()
        if what == "grow":
            bytes(2 << 30)
        if what == "leave":
            Path("a.partial").touch()
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        print(what)
        raise SystemExit(2 if what == "wrong" else 7 if what == "seven" else 0)

    monkeypatch.setattr(playing, "main", command)
    monkeypatch.setattr("robustness.workers.SECONDS", 0.2)
    with Worker() as opened:
        yield opened


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("fine", ""),
        ("raise", "traceback: LookupError"),
        ("spin", "hang: "),
        ("grow", "memory: MemoryError"),
        ("die", "death: "),
        ("leave", "left behind: a.partial"),
        ("seven", "exit code: 7"),
        ("wrong", "no file name: "),
        ("\x1b[31m", "raw text: a control character in stdout"),
        ("\u202e", "raw text: a format character in stdout"),
    ],
)
def test_what_goes_wrong_is_found(stand_in: Worker, argument: str, problem: str) -> None:
    ended = stand_in.play(Trial("x:0", (argument,), {"f": Text(b"")}, subject="f"))
    assert ended.cause.startswith(problem)
    assert bool(ended.cause) == bool(problem)
    assert not stand_in.play(Trial("x:0", ("fine",), {})).cause


def test_a_failure_is_shrunk_to_what_it_needs() -> None:
    root = nodes.made({"a": [1, 2, {"b": "xxbadxx"}], "c": {"d": None}})

    def play(trial: Trial) -> Ended:
        content = trial.files["f"].bytes()  # type: ignore[union-attr]
        return Ended("traceback", "here") if b"bad" in content else Ended()

    least = shrunk(Trial("x:0", (), {"f": Document(root, "yaml")}), "traceback: here", play)
    assert least.files["f"] == Document(nodes.Leaf("bad"), "yaml")
    lines = Trial("x:0", (), {"f": Text(b"one\ntwo bad\nthree\n")})
    assert shrunk(lines, "traceback: here", play).files["f"] == Text(b"bad")
