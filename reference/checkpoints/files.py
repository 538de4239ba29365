"""Checkpoint files: one for each manager, in the kubelet's state directory.

A checkpoint is a JSON object. Its checksum is the 32-bit FNV-1a hash of Go's textual dump of the
structure with the checksum field set to zero.

In the reference, only this module and `numaproof.reference.cadvisor.sysfs` touch files.
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
    """A manager's checkpoint file, whose contents `dump` computes from the state.

    `name` is the file's path below the state directory.
    """

    def __init__(self, state_dir: Path, name: str, dump: Callable[[State], bytes]) -> None:
        self.name = name
        self.path = os.path.join(state_dir, name)  # noqa: PTH118 - as for `write`
        self._dump = dump
        self._last_content = b""

    def read(self) -> bytes | None:
        """Returns the contents, or None if the file does not exist."""
        return read(self.path)

    def write(self, state: State) -> None:
        """Writes the state unless the file's contents would be the same as last time."""
        content = self._dump(state)
        if content != self._last_content:
            write(self.path, content)
            self._last_content = content


class CheckpointError(Exception):
    """A checkpoint cannot be restored; the text is the kubelet's."""


def checksum(dump: str) -> int:
    """Returns the 32-bit FNV-1a hash of a textual dump.

    Requirements: CPU-CHECKPOINT-004.
    """
    return fnv1a_32(dump.encode())


def encode(document: Mapping[str, Any]) -> bytes:
    """Encodes JSON as Go does, with HTML's special characters escaped.

    Go sorts the keys of maps as strings; `document` must already be in that order.
    """
    text = msgspec.json.encode(document)
    for character, escape in _HTML.items():
        text = text.replace(character, escape)
    return text


def read(path: str | Path) -> bytes | None:
    try:
        # Without pathlib, for speed; see `write`.
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        return None


def write(path: str | Path, content: bytes) -> None:
    """Replaces the file atomically: it contains the old bytes or the new ones, never a mixture."""
    folder, name = os.path.split(path)
    unfinished = f"{folder or '.'}/.{name}"
    try:
        try:
            _fill(unfinished, content)
        except FileNotFoundError:
            Path(folder).mkdir(parents=True)
            _fill(unfinished, content)
        # With pathlib, this would take twice as long, at every admission.
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
