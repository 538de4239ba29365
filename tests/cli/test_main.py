"""The command as a whole: help, completion, streams, and the reference as a server."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from builders.input_files import KUBELET
from numaproof import fakesys
from numaproof.cli import main as entry
from numaproof.cli.doctor import doctor
from numaproof.cli.entry import run
from numaproof.cli.main import cli
from numaproof.cli.metadata import VERSION
from numaproof.reference import startup

Command = Callable[..., Any]

NUMAPROOF = [str(Path(sys.executable).parent / "numaproof")]


def commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in group.commands:
        _, one, _ = group.resolve_command(click.Context(group), [name])
        found.append((*path, name))
        if isinstance(one, click.Group):
            found += commands(one, *path, name)
    return found


@pytest.mark.parametrize("path", [(), *commands(cli)], ids=" ".join)
def test_the_help_of_each_command_has_an_example(command: Command, path: tuple[str, ...]) -> None:
    ended = command(*path, "--help")
    assert ended.code == 0
    assert "Example" in ended.out
    assert f"numaproof {' '.join(path)}".strip() in ended.out


@pytest.mark.parametrize(
    ("args", "incomplete", "expected"),
    [
        (["check", "--machine"], "laptop-4", ["laptop-4c8t"]),
        (["check", "--select"], "example-besteffort", ["example-besteffort-runs-shared"]),
        (["promote", "--requirement"], "cpu-none-001", ["CPU-NONE-001"]),
        (["profile", "show"], "dgx-", ["dgx-spark-gb10"]),
        (["upgrade", "--machine"], "laptop-4", ["laptop-4c8t"]),
        (["upgrade", "--to"], "1.36", ["1.36"]),
    ],
)
def test_names_in_options_are_completed(
    args: list[str], incomplete: str, expected: list[str]
) -> None:
    complete = ShellComplete(cli, {}, "numaproof", "_NUMAPROOF_COMPLETE")
    assert [item.value for item in complete.get_completions(args, incomplete)] == expected


def test_doctor_completes_files() -> None:
    (argument,) = (one for one in doctor.params if one.name == "command")
    (item,) = argument.shell_complete(click.Context(doctor), "./my")
    assert (item.value, item.type) == ("./my", "file")


def test_the_module_is_the_command() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof", "--version"], capture_output=True, text=True, check=True
    )
    assert VERSION in ended.stdout


def test_a_machine_is_drawn_on_an_ascii_terminal() -> None:
    ended = subprocess.run(
        [*NUMAPROOF, "profile", "show", "laptop-4c8t"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert "Socket 0" in ended.stdout.decode("ascii")
    assert ended.stderr == b""


def on_terminal(*args: str, **environment: str) -> str:
    """Returns the output of a command on a terminal."""
    ours, theirs = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    settings = {**clean, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    running = subprocess.Popen([*NUMAPROOF, *args], stdout=theirs, env=settings)
    os.close(theirs)
    written = bytearray()
    # Reading from a terminal whose other side is closed is an error, not an empty read.
    with suppress(OSError):
        while chunk := os.read(ours, 65536):
            written += chunk
    os.close(ours)
    assert running.wait(60) == 0
    return written.decode()


def test_a_terminal_gets_colour_unless_it_is_turned_off() -> None:
    assert "\x1b[" in on_terminal("profile", "show", "laptop-4c8t")
    plain = on_terminal("profile", "show", "laptop-4c8t", NO_COLOR="1")
    assert "\x1b" not in plain
    assert "Socket 0" in plain


READER_NEEDED = {
    "profile list --json": -signal.SIGPIPE,
    "profile show laptop-4c8t": -signal.SIGPIPE,
    "case list": -signal.SIGPIPE,
    "--help": -signal.SIGPIPE,
    "--version": -signal.SIGPIPE,
    "check --help": -signal.SIGPIPE,
    "check --machine laptop-4c8t --select example-*": 3,
}


@pytest.mark.parametrize("args", READER_NEEDED)
def test_only_a_run_fails_if_its_reader_leaves(args: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [*NUMAPROOF, *args.split()],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        cwd=tmp_path,
    )
    os.close(writing)
    assert ended.returncode == READER_NEEDED[args]
    assert ended.stderr == b""


def test_reading_part_of_a_list_is_fine() -> None:
    shell = f"set -o pipefail; {NUMAPROOF[0]} case list | head -1"
    ended = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert ended.returncode == 128 + signal.SIGPIPE
    assert (ended.stdout.count(b"\n"), ended.stderr) == (1, b"")


def test_a_full_disk_exits_with_2() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*NUMAPROOF, "profile", "list"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 2
    assert b"No space left on device" in ended.stderr


def test_a_fault_of_the_reference_is_reported_as_a_bug(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*_args: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(startup, "start", raise_error)
    Path("kubelet.yaml").write_text(KUBELET + "cpuManagerPolicy: static\n")
    ended = command("config", "check", "kubelet.yaml", "--machine", "laptop-4c8t")
    assert ended.code == 1
    assert "kubelet.yaml:1: fault: the reference failed: RuntimeError: out of order" in ended.out
    assert "a bug in numaproof" in ended.out


def test_a_tree_that_no_profile_describes_is_reported(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("profile", "tree", "laptop-4c8t", "--out", "tree")
    other = fakesys.load_profile("vm-1-cpu")
    monkeypatch.setattr(fakesys, "capture", lambda *_: other)
    ended = command("profile", "capture", "tree", "--name", "mine")
    assert ended.code == 2
    assert "tree: a profile cannot describe this machine exactly" in ended.err


def test_an_interrupt_outside_a_run_exits_with_3(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        entry._interrupt(15, None)

    monkeypatch.setattr("numaproof.cli.profiles.read_machine", interrupt)
    ended = command("profile", "show", "laptop-4c8t")
    assert ended.code == 3
    assert "interrupted" in ended.err


def test_running_out_of_memory_is_not_reported_as_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def large(_: str) -> None:
        raise MemoryError

    monkeypatch.setattr("numaproof.cli.main.main", large)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 3
    assert "out of memory; run fewer cases" in capsys.readouterr().err


def test_an_internal_bug_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def raise_error(_: str) -> None:
        raise LookupError("boom \x1b[31m")

    monkeypatch.setattr("numaproof.cli.main.main", raise_error)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 3
    told = capsys.readouterr().err
    assert "internal error, a bug in numaproof: LookupError: boom ⟨U+001B⟩[31m (cli/" in told
    assert "Please report it" in told
    assert "Traceback" not in told
    monkeypatch.setenv("NUMAPROOF_TRACEBACK", "1")
    with pytest.raises(LookupError):
        run()


@pytest.mark.parametrize("flag", [(), ("--baseline", "documented")])
def test_the_reference_speaks_the_protocol(flag: tuple[str, ...]) -> None:
    request = {"id": 1, "op": "hello", "args": {"protocol": [1, 1], "harness": "tests"}}
    ended = subprocess.run(
        [*NUMAPROOF, "reference", *flag],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(ended.stdout)
    assert answer["id"] == 1
    assert answer["ok"]["name"] == "numaproof reference"
