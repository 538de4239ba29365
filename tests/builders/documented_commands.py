"""The commands in the code blocks of pages, as their readers would type them."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import click

from builders.checkout import ROOT
from numaproof.cli.main import cli
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SHELLS = ("console", "sh", "bash", "shell")
_PROMPT = re.compile(r"^\w*\$ +", re.MULTILINE)
_FAILURE = r"(?m)^ *✗|^Failed: |: error: | does not start"
_SPLIT = re.compile(r"&&|\|\|?|;|<\(|(?<!\\)[()]|\bdo\b|\bdone\b|\n")
_PLACEHOLDERS = (
    (re.compile(r"\\\n"), " "),
    (re.compile(r"\$\([^)]*\)"), "0:2"),
    (re.compile(r"\$file\b"), "docs/findings/free-core-by-average.yaml"),
    (re.compile(r'"\$@"'), "--right ./my-driver"),
    (re.compile(r"(?<= )\.\.\.(?= |$)"), ""),
    (re.compile(r"\b1\.38\b"), NEWEST),
)
"""What the shell and the reader would fill in, and the release to come."""


@dataclass(frozen=True)
class Command:
    """A command on a page.

    Attributes:
        page: the page's path in the repository.
        block: the number of its block on the page.
        text: the command, all of its lines.
        output: the lines that the page shows below it.
    """

    page: str
    block: int
    text: str
    output: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether the page shows that the command fails."""
        shown = "\n".join(self.output)
        return "≈" not in shown and re.search(_FAILURE, shown) is not None


@dataclass(frozen=True)
class Diff:
    """A change to a file that a page asks its reader to make."""

    page: str
    text: str


def name(page: Path) -> str:
    """The path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def steps(page: Path) -> list[Command | Diff]:
    """The commands and differences of a page, in order."""
    found: list[Command | Diff] = []
    for number, (indent, kind, text) in enumerate(_BLOCK.findall(page.read_text("utf-8"))):
        block = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        if kind == "diff":
            found.append(Diff(name(page), block))
        if kind in _SHELLS:
            found += [Command(name(page), number, *one) for one in _commands(block)]
    return found


@cache
def commands() -> tuple[Command, ...]:
    """Every command on every page."""
    return tuple(one for page in PAGES for one in steps(page) if isinstance(one, Command))


def blocks_of_no_language() -> list[tuple[str, str]]:
    """The page and the text of every block that doesn't state its language."""
    return [
        (name(page), text)
        for page in PAGES
        for _, kind, text in _BLOCK.findall(page.read_text("utf-8"))
        if not kind
    ]


def _commands(block: str) -> list[tuple[str, tuple[str, ...]]]:
    """The commands of a block with their output; without prompts, every line is a command."""
    if not _PROMPT.search(block):
        return [(one, ()) for one in _statements(block.splitlines())[0]]
    found = []
    for part in filter(None, _PROMPT.split(block)):
        (first, *_), rest = _statements(part.splitlines(), most=1)
        found.append((first, tuple(rest)))
    return found


def _statements(lines: list[str], most: int | None = None) -> tuple[list[str], list[str]]:
    """The first statements of a script without comments, and the remaining lines."""
    found: list[str] = []
    waiting = list(lines)
    while waiting and (most is None or len(found) < most):
        statement = waiting.pop(0)
        while waiting and not _is_complete(statement):
            statement += "\n" + waiting.pop(0)
        statement = re.sub(r"(^|\s+)# .*", "", statement)
        if statement.strip():
            found.append(statement)
    return found, waiting


def _is_complete(statement: str) -> bool:
    if statement.endswith("\\"):
        return False
    ended = subprocess.run(["bash", "-n", "-c", statement], capture_output=True, check=False)
    return ended.returncode == 0


def command_lines(text: str) -> list[list[str]]:
    """The words after `numaproof` in each of its command lines within a command."""
    for form, value in _PLACEHOLDERS:
        text = form.sub(value, text)
    found = []
    for part in _split(text):
        words = shlex.split(part)
        if "podman" in words and "run" in words:
            words = words[words.index("numaproof") :]
        if words and words[0].rpartition("/")[2] == "numaproof":
            found.append(words[1:])
    return found


def _split(text: str) -> list[str]:
    """The simple commands of a command, apart from redirections."""
    parts = [""]
    for piece in re.findall(r'"[^"]*"|\'[^\']*\'|[^"\']+', text):
        if piece[0] in "\"'":
            parts[-1] += piece
        else:
            first, *more = _SPLIT.split(piece)
            parts[-1] += first
            parts += more
    return [re.sub(r"\s\d?>\s*\S+", "", part).strip() for part in parts if part.strip()]


def parse(words: list[str]) -> click.Context:
    """Parses a command line, without running the command.

    Raises:
        click.ClickException: the command would refuse it.
    """
    command: click.Command = cli
    context: click.Context | None = None
    while isinstance(command, click.Group):
        parent = click.Context(command, parent=context, info_name=command.name)
        _, found, words = command.resolve_command(parent, words)
        assert found is not None
        command, context = found, parent
    return command.make_context(command.name, list(words), parent=context)
