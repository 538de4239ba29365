"""A trial: the command line and the files of an attack."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Folder:
    """An empty folder."""


File = bytes | Link | Folder
_SHOWN = 2000


@dataclass(frozen=True, repr=False)
class Trial:
    """An attack.

    Attributes:
        args: the arguments of the command.
        files: the contents of its folder, by path.
        sound: the unmutated content by path, to show the change.
        subject: the file that an error must name, or empty.
        has_lines: whether an error must also name a line.
        stdin: the file on standard input.
        output_name: the file that the command writes only if it succeeds.
        terminal: whether it writes to a terminal, in colour.
    """

    args: tuple[str, ...]
    files: dict[str, File] = field(default_factory=dict)
    sound: dict[str, bytes] = field(default_factory=dict)
    subject: str = ""
    has_lines: bool = False
    stdin: str = ""
    output_name: str = ""
    terminal: bool = False

    def write(self, folder: Path) -> None:
        """Writes the files into an empty folder."""
        for name, file in self.files.items():
            path = os.path.join(folder, name)  # noqa: PTH118 - a name may be no UTF-8
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            if isinstance(file, Link):
                os.symlink(file.target, path)  # noqa: PTH211
            elif isinstance(file, Folder):
                os.makedirs(path, exist_ok=True)  # noqa: PTH103
            else:
                Path(path).write_bytes(file)

    def __str__(self) -> str:
        """Returns the command, and how each mutated file differs from the valid one."""
        parts = [f"$ numaproof {' '.join(ascii(one)[1:-1] for one in self.args)}"[:_SHOWN]]
        for name, sound in self.sound.items():
            file = self.files[name]
            before, after = (
                [ascii(line)[2:-1] for line in one.split(b"\n")]
                for one in (sound, file if isinstance(file, bytes) else repr(file).encode())
            )
            lines = difflib.unified_diff(before, after, "sound", ascii(name), lineterm="", n=1)
            parts.append("\n".join(line[:_SHOWN] for line in lines)[:_SHOWN])
        return "\n".join(parts)
