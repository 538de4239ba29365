"""What a program writes to its standard error, of which the middle may be left out."""

from __future__ import annotations

from numaproof.inputs.plurals import plural

STDERR_KEPT = 8 * 1024
"""Bytes kept of the beginning and of the end of what a program logs in a call, and before it."""


class _Clipped:
    """The beginning and the end of a text that may be endless."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._lines = 0

    def add(self, chunk: bytes) -> None:
        room = STDERR_KEPT - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        cut = len(self._tail) - STDERR_KEPT
        if cut > 0:
            self._lines += self._tail.count(b"\n", 0, cut)
            del self._tail[:cut]

    def content(self) -> bytes:
        left_out = f"\n[... {plural(self._lines, 'line')} left out ...]\n"
        gap = left_out.encode() if self._lines else b""
        return bytes(self._head) + gap + bytes(self._tail)


class ProgramLog:
    """What a program logs in a case: before the last call, and since."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """A case begins: what was logged before is none of it."""
        self._before, self._now = _Clipped(), _Clipped()

    def mark(self) -> None:
        """A call begins."""
        self._before.add(self._now.content())
        self._now = _Clipped()

    def add(self, chunk: bytes) -> None:
        """Takes in what the program has written."""
        self._now.add(chunk)

    def text(self) -> str:
        """All that is kept."""
        return (self._before.content() + self._now.content()).decode("utf-8", "replace")
