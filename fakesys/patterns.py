"""Patterns that match files of a tree.

Patterns such as ``cpu/cpu{0-3}/topology/core_id`` or ``node/node*/distance`` are relative to
``sys/devices/system``, or start with ``sys/`` or ``proc/``. ``{0-3,8}`` matches each of these
numbers, ``*`` anything within one part of the path. A part has at most two ``*``, and a pattern so
many numbers, that matching takes no longer than reading does.
"""

import itertools
import re

from numaproof.fakesys.entries import SYSTEM
from numaproof.fakesys.ranges import parse_list

_MAX_FILES = 20_000
_LIMIT = 2**20 + 1  # huge pages of 1048576 kB
_MAX_NUMBERS = 8192
_MAX_STARS = 2
_TOP = ("sys/devices/system/cpu", "sys/devices/system/node", "sys/kernel/mm", "proc")


class PatternError(ValueError):
    """A pattern is invalid, or leaves the tree."""


class Pattern:
    """A pattern; matches a file if it matches the file's path or a directory above it."""

    __slots__ = ("_choices", "_literal", "_regex", "_text")

    def __init__(self, text: str) -> None:
        path = text if text.startswith(("sys/", "proc/")) else f"{SYSTEM}/{text}"
        if not any(path == top or path.startswith(f"{top}/") for top in _TOP):
            raise PatternError(f"{text!r} is outside the tree; start with cpu/ or node/")
        parts = re.split(r"(\{[^{}]*\}|\*)", path)
        if any(part in ("", ".", "..") for part in path.split("/")) or re.search(
            r"[{}\0\\]", "".join(parts[::2])
        ):
            raise PatternError(f"invalid pattern {text!r}; use one such as cpu/cpu{{0-3}}/topology")
        for part in path.split("/"):
            if part.count("*") > _MAX_STARS:
                raise PatternError(f"{text!r}: more than {_MAX_STARS} * in {part!r}")
        self._text = text
        self._literal: list[str] = parts[::2]
        self._choices: list[tuple[int, ...] | None] = []
        count = 0
        for part in parts[1::2]:
            try:
                choice = None if part == "*" else parse_list(part[1:-1], _LIMIT)
            except ValueError as error:
                raise PatternError(f"{text!r}: {error}") from None
            self._choices.append(choice)
            count += len(choice or ())
            if count > _MAX_NUMBERS:
                raise PatternError(f"{text!r} has {count:,} numbers; the limit is {_MAX_NUMBERS:,}")
        self._regex = re.compile(f"{self._expression()}(?:/.*)?", re.DOTALL)

    def _expression(self) -> str:
        """The regular expression of the path; a part that has matched is not tried again."""
        whole = re.escape(self._literal[0])
        for choice, literal in zip(self._choices, self._literal[1:], strict=True):
            whole += "[^/]*" if choice is None else f"(?:{'|'.join(map(str, choice))})"
            whole += re.escape(literal)
        return "/".join(f"(?>{part}(?=/|\\Z))" for part in re.split(r"(?<!\^)/", whole))

    def covers(self, path: str) -> bool:
        """Whether it matches this path, or a directory above it."""
        return self._regex.fullmatch(path) is not None

    def expand(self) -> list[str]:
        """The paths that a pattern without ``*`` matches.

        Raises:
            PatternError: it has a ``*``, or matches too many files.
        """
        choices: list[tuple[int, ...]] = []
        total = 1
        for choice in self._choices:
            if choice is None:
                raise PatternError(f"{self._text!r}: use numbers such as {{0-3}} instead of *")
            choices.append(choice)
            total *= len(choice)
        if total > _MAX_FILES:
            raise PatternError(f"{self._text!r} matches {total} files; the limit is {_MAX_FILES}")
        return [
            self._literal[0]
            + "".join(
                f"{number}{literal}"
                for number, literal in zip(numbers, self._literal[1:], strict=True)
            )
            for numbers in itertools.product(*choices)
        ]
