"""Checkpoint files: one for each manager, in the kubelet's state directory.

A checkpoint is one JSON object. Its checksum is the 32-bit FNV-1a hash of Go's textual dump of the
structure, with the checksum field at zero.

This module and `numaproof.reference.cadvisor.sysfs` are all of the reference that touches files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from fnv_hash_fast import fnv1a_32

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_HTML = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "<>&\u2028\u2029"}


State = TypeVar("State")


class CheckpointFile(Generic[State]):
    """The file that holds a manager's state, which `dump` puts into words.

    `name` is the file's, below the state directory.
    """

    def __init__(self, state_dir: Path, name: str, dump: Callable[[State], bytes]) -> None:
        """Touches no file yet; see the class."""
        self.name = name
        self.path = os.path.join(state_dir, name)  # noqa: PTH118 - as for `write`
        self._dump = dump
        self._last_content = b""

    def read(self) -> bytes | None:
        """The content; None where there is no file."""
        return read(self.path)

    def write(self, state: State) -> None:
        """Writes the state, unless it reads like the one that was written last."""
        content = self._dump(state)
        if content != self._last_content:
            write(self.path, content)
            self._last_content = content


class CheckpointError(Exception):
    """A checkpoint cannot be restored; the text is the kubelet's."""


def checksum(dump: str) -> int:
    """The 32-bit FNV-1a hash of a textual dump.

    Requirements: CPU-CHECKPOINT-004.
    """
    return fnv1a_32(dump.encode())


def encode(document: Mapping[str, Any]) -> bytes:
    """JSON as Go writes it, with the characters escaped that mean something in HTML.

    Go sorts the keys of a map as text; `document` must have them in that order.
    """
    text = msgspec.json.encode(document)
    for character, escape in _HTML.items():
        text = text.replace(character, escape)
    return text


def read(path: str | Path) -> bytes | None:
    """The file's bytes; None where there is no file."""
    try:
        # Without pathlib, for the reason given below.
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return None


def write(path: str | Path, content: bytes) -> None:
    """Replaces the file in one step: it holds the old bytes or the new ones, never a mixture."""
    folder, name = os.path.split(path)
    unfinished = f"{folder or '.'}/.{name}"
    try:
        try:
            _fill(unfinished, content)
        except FileNotFoundError:
            Path(folder).mkdir(parents=True)
            _fill(unfinished, content)
        # pathlib's objects would take twice as long as the file itself, at every admission.
        os.replace(unfinished, path)  # noqa: PTH105
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _fill(path: str, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)
