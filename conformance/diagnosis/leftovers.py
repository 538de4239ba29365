"""The files that a program leaves outside of its state directory.

A folder is looked at before and after, as far down as a program would put a file of its own. What
others do there meanwhile cannot be told apart.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_MOST = 20_000
"""Entries of a folder that are looked at."""

_DEPTH = 3

_SKIPPED = frozenset({"__pycache__", ".git", "node_modules", ".venv", ".tox", ".cache"})
"""Folders that tools fill while a program is started."""

_OF_HOME = ("", ".config", ".local/share", ".local/state")
"""Folders of a home directory in which programs keep what is theirs."""

Seen = dict[str, tuple[int, int]]
"""Files by their paths in a folder, each with its time of change and size; folders have neither."""


class Leftovers:
    """What changes in the working directory, in the home directory and in a temporary folder.

    Args:
        temporary: an empty folder that only the program uses.
    """

    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self._here = Path.cwd()
        self._home = Path(os.environ.get("HOME") or "/nonexistent")
        self._in_home = self._seen_at_home()
        # Everybody writes to a home directory, and to one like /tmp, whose sticky bit keeps users
        # apart; nothing deep below it is the program's for sure.
        self._is_everybodys = self._here.resolve() == self._home.resolve() or bool(
            self._here.stat().st_mode & stat.S_ISVTX
        )
        self._before: Seen = {} if self._is_everybodys else seen(self._here, _DEPTH)

    def here(self) -> list[str]:
        """What is new or has changed in the working directory, if that is not everybody's."""
        now = {} if self._is_everybodys else seen(self._here, _DEPTH)
        return _changed(self._before, now)

    def temporary(self) -> list[str]:
        """What is in the temporary folder."""
        return sorted(seen(self._temporary, 1))

    def at_home(self) -> list[str]:
        """What is new in the home directory."""
        new = sorted(self._seen_at_home() - self._in_home)
        # The working directory may be one of its folders.
        mine = {str(self._here / name) for name in self.here()}
        return [f"~/{name}" for name in new if str(self._home / name) not in mine]

    def _seen_at_home(self) -> set[str]:
        return {
            f"{folder}/{name}".lstrip("/")
            for folder in _OF_HOME
            for name in seen(self._home / folder, 1)
        }


def seen(folder: Path, depth: int) -> Seen:
    """What is in a folder and so many levels below; what cannot be read has nothing in it."""
    found: Seen = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        inside = Path(here).relative_to(folder)
        for name in (*folders, *files):
            with suppress(OSError):
                status = (Path(here) / name).lstat()
                is_file = not stat.S_ISDIR(status.st_mode)
                found[str(inside / name)] = (status.st_mtime_ns * is_file, status.st_size * is_file)
        if len(inside.parts) + 1 == depth or len(found) > _MOST:
            folders.clear()
    return found


def _changed(before: Seen, now: Seen) -> list[str]:
    """What is new, without what lies in a folder that is new itself, and what has changed."""
    new = now.keys() - before.keys()
    tops = {name for name in new if name.rpartition("/")[0] not in new}
    changed = {name for name in now.keys() & before.keys() if now[name] != before[name]}
    return sorted(tops | changed)
