"""`numaproof doctor` as a person sees it: text, colour, JSON and exit codes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from numaproof.cli.doctor import doctor

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Command = Callable[..., Any]

DRIVER = Path(__file__).parents[2] / "examples" / "driver.py"


@pytest.fixture
def driver() -> str:
    """The driver of docs/fuzzing.md, whose bug the doctor names."""
    return shlex.join([sys.executable, str(DRIVER)])


def test_the_bug_of_the_sample_driver_is_named_and_exits_1(command: Command, driver: str) -> None:
    ended = command("doctor", driver)
    assert ended.code == 1
    assert "✗ after admit (11): the state lists uid-db, uid-huge, uid-log, uid-web" in ended.out
    assert "✗ small-driver: 1 thing wrong" in ended.out
    assert "What to do next:\n  1. shown by state (" in ended.out
    assert "\x1b" not in ended.out


def test_the_reference_is_healthy_and_exits_0(command: Command) -> None:
    ended = command("doctor", "--timeout", "60s", f"{sys.executable} -m numaproof reference")
    assert ended.code == 0
    assert "✓ numaproof reference is healthy" in ended.out
    assert "✗" not in ended.out


def test_words_after_two_dashes_are_the_program(command: Command) -> None:
    ended = command("doctor", "--json", "--", sys.executable, str(DRIVER))
    assert ended.code == 1
    found = ended.json()
    assert found["command"] == shlex.join([sys.executable, str(DRIVER)])
    assert not found["healthy"]
    assert found["exchanges"][0]["step"] == "hello"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, "A path is looked up from here"),
        ("text", "Make it executable"),
        ("script", "A script needs a first line"),
        ("folder", "That is a directory"),
    ],
)
def test_a_program_that_cannot_be_started_is_wrong_input(
    command: Command, tmp_path: Path, make: str | None, said: str
) -> None:
    program = tmp_path / "adapter"
    if make == "folder":
        program.mkdir()
    elif make:
        program.write_text("no program")
        program.chmod(0o755 if make == "script" else 0o644)
    ended = command("doctor", str(program))
    assert ended.code == 2
    assert "can't start" in ended.err
    assert said in ended.err


def test_files_complete_the_program() -> None:
    (argument,) = (one for one in doctor.params if one.name == "command")
    (item,) = argument.shell_complete(click.Context(doctor), "./my")
    assert (item.value, item.type) == ("./my", "file")
