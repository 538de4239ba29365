"""Pages: shell sessions in text files that show everything the commands print.

A page has prose at the margin and sessions indented by two spaces, as in `cram`::

    An unknown policy is refused.

      $ cat > kubelet.yaml << END
      > kind: KubeletConfiguration
      > END
      $ numaproof config check kubelet.yaml | head -1
      kubelet.yaml:1: ...
      ! warning: ...
      [2]

Lines with `! ` are standard error. The exit code follows unless it is 0. Shell commands set up
files and filter output. `numaproof` runs in this process; `NAME=value` before it sets the
environment, and `|`, `>/dev/null` and `2>/dev/null` may follow.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OUR_COMMAND = re.compile(r"(?:(.*?) \| )?((?:\w+=\S* )*)numaproof( .*?)?(?: \| (.*))?", re.DOTALL)
"""The parts of our command's line: input, environment, arguments, and the filter of its output."""

_SILENCE = (">/dev/null", "2>/dev/null")


class Finished(Protocol):
    """The result of a command."""

    @property
    def code(self) -> int: ...
    @property
    def out(self) -> str: ...
    @property
    def err(self) -> str: ...


@dataclass
class _Block:
    """Some prose and the commands below it."""

    prose: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Shell:
    """Runs the commands of a page in the current directory.

    Attributes:
        ours: runs `numaproof` with arguments, an environment and standard input.
        hide: removes varying parts of the output.
    """

    ours: Callable[[list[str], dict[str, str], str], Finished]
    hide: Callable[[str], str]

    def play(self, page: str) -> str:
        """Returns the page with the current output of its commands."""
        return (
            "\n\n".join(
                part
                for block in _read(page)
                for part in ("\n".join(block.prose), "\n".join(map(self._session, block.commands)))
                if part
            )
            + "\n"
        )

    def _session(self, command: str) -> str:
        first, *more = command.split("\n")
        code, out, err = self._run(command)
        lines = [
            *self.hide(out).splitlines(),
            *(f"! {line}" for line in self.hide(err).splitlines()),
        ]
        lines += [f"[{code}]"] if code else []
        shown = [f"  {line}".rstrip() for line in lines]
        return "\n".join([f"  $ {first}", *(f"  > {line}".rstrip() for line in more), *shown])

    def _run(self, command: str) -> tuple[int, str, str]:
        found = OUR_COMMAND.fullmatch(command)
        if not found or "\n" in command:
            return _sh(command)
        before, settings, words, after = found.groups()
        given = _sh(before)[1] if before else ""
        environment = dict(word.split("=", 1) for word in shlex.split(settings))
        given_words = _words(words or "")
        ended = self.ours([one for one in given_words if one not in _SILENCE], environment, given)
        said = "" if "2>/dev/null" in given_words else ended.err
        if not after:
            return ended.code, "" if ">/dev/null" in given_words else ended.out, said
        _, out, err = _sh(after, self.hide(ended.out))
        return ended.code, out, said + err


def _words(text: str) -> list[str]:
    """Splits a command into words, using a shell only for expansions that need one."""
    if "$(" not in text:
        return shlex.split(text)
    return _sh(f"printf '%s\\0' {text}")[1].split("\0")[:-1]


def _sh(command: str, stdin: str = "") -> tuple[int, str, str]:
    """Runs a shell command; returns exit code, output and errors, which may contain any byte."""
    ran = subprocess.run(
        ["sh", "-c", command], input=os.fsencode(stdin), capture_output=True, check=False
    )
    return ran.returncode, os.fsdecode(ran.stdout), os.fsdecode(ran.stderr)


def _read(page: str) -> Iterator[_Block]:
    block = _Block()
    lines = page.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("  $ "):
            rest = takewhile(lambda text: text.startswith("  >"), lines[number + 1 :])
            block.commands.append("\n".join([line[4:], *(one[4:] for one in rest)]))
        elif line and not line.startswith("  "):
            if block.commands:
                yield block
                block = _Block()
            block.prose.append(line)
    yield block
