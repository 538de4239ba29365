"""Completion in real shells: bash, zsh and fish."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMAPROOF = Path(sys.executable).parent / "numaproof"

# bash and fish let scripts request completions, loaded as in the README.
BASH = """
eval "$(_NUMAPROOF_COMPLETE=bash_source numaproof)"
COMP_WORDS=({words} "{last}") COMP_CWORD={index}
_numaproof_completion numaproof "{last}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
_NUMAPROOF_COMPLETE=fish_source numaproof | source
complete --do-complete "{words} {last}"
"""
# zsh only completes input typed into a terminal.
ZSHRC = """
PROMPT="ready> " LISTMAX=1000
autoload -Uz compinit && compinit -u -d "$ZDOTDIR/dump"
eval "$(_NUMAPROOF_COMPLETE=zsh_source numaproof)"
"""
SHELLS = ("bash", "zsh", "fish")


def missing(shell: str, line: str, expected: Iterable[str], home: Path) -> list[str]:
    """Returns the expected completions that a shell does not offer after a line is typed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{NUMAPROOF.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(home), "ZDOTDIR": str(home)}
    if shell == "zsh":
        (home / ".zshrc").write_text(ZSHRC)
        return _missing_in_terminal(line, expected, environment | {"TERM": "dumb"})
    *words, last = line.split(" ")
    script = {"bash": BASH, "fish": FISH}[shell]
    script = script.format(words=" ".join(words), last=last, index=len(words))
    bare = {"bash": "--norc", "fish": "--no-config"}[shell]
    ended = subprocess.run(
        [shell, bare, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    return [one for one in expected if one not in ended.stdout]


def _missing_in_terminal(
    line: str, expected: Iterable[str], environment: dict[str, str]
) -> list[str]:
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(terminal, (200, 200))
    zsh = subprocess.Popen(
        ["zsh", "-i"],
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = _read_until(terminal, ["ready> "])
        os.write(terminal, f"{line}\t\t".encode())
        shown = _read_until(terminal, expected)
    finally:
        zsh.kill()
        zsh.wait()
        os.close(terminal)
    return [one for one in expected if one not in shown]


def _read_until(terminal: int, expected: Iterable[str]) -> str:
    """Reads until everything expected is shown, or nothing comes for 20 s."""
    shown = b""
    while any(one not in shown.decode(errors="replace") for one in expected):
        if not select.select([terminal], [], [], 20)[0]:
            break
        shown += os.read(terminal, 1 << 16)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed_with_their_first_sentence(shell: str, tmp_path: Path) -> None:
    commands = [both for section in COMMANDS.values() for both in section.items()]
    expected = [name for name, _ in commands]
    if shell != "bash":
        expected += [summary for _, summary in commands]
    assert missing(shell, "numaproof ", expected, tmp_path) == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("numaproof che", "check"),
        ("numaproof check --mach", "--machine"),
        ("numaproof check --machine laptop-4", "laptop-4c8t"),
        ("numaproof check --select example-besteffort", "example-besteffort-runs-shared"),
        ("numaproof upgrade --from 1.3", "1.37"),
        ("numaproof profile sh", "show"),
    ],
)
def test_cases_and_machines_are_completed(
    shell: str, line: str, expected: str, tmp_path: Path
) -> None:
    assert missing(shell, line, [expected], tmp_path) == []
