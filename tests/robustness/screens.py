"""A terminal for a trial: its input without rich's own sequences."""

from __future__ import annotations

import os
import pty
import re
import termios
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

_OURS = re.compile(rb"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AKJ])|\r")
"""Colours and cursor movements of the progress bar. No attack uses our colours."""

_SETTINGS = {"TERM": "xterm-256color", "COLUMNS": "200"}


class Screen:
    """Attaches a terminal to standard output and standard error in a ``with`` block.

    Args:
        path: the file that gets the output at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._output = bytearray()

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        settings = termios.tcgetattr(theirs)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        for number in (1, 2):
            os.dup2(theirs, number)
        os.close(theirs)
        os.environ.update(_SETTINGS)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def _read(self) -> None:
        # Reading from a terminal whose other side is closed is an error, not an empty read.
        with suppress(OSError):
            while chunk := os.read(self._ours, 65536):
                self._output += chunk

    def __exit__(self, *_: object) -> None:
        self._reader.join()
        os.close(self._ours)
        for name in _SETTINGS:
            os.environ.pop(name)
        self._path.write_bytes(_OURS.sub(b"", bytes(self._output)))
