"""The files that a kubelet leaves behind and the next one reads."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.inputs import door
from numaproof.reference.checkpoints import cpu, devices, files, memory
from numaproof.simulation.checkpoints import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CPU, MEMORY = cpu.FILE_NAME, memory.FILE_NAME
NAMES = (CPU, MEMORY, devices.FILE_NAME)
"""The checkpoints of the CPU, Memory and Device Managers, below the kubelet's directory."""

BY_STAGE = {"cpu": CPU, "memory": MEMORY}
"""The file that a start has read by the stage at which it is refused."""

Files = dict[str, bytes]


class FileFate(msgspec.Struct, frozen=True):
    """What the new kubelet makes of a file.

    It reads it and leaves it as it is, or `rewritten` in its own form; or it refuses to start with
    it, for the reason in `message`.
    """

    file: str
    fate: Literal["read", "rewritten", "refused"]
    message: str = ""


class NoStateError(ValueError):
    """A directory has no checkpoint of the managers; the message names it."""


def load(folder: Path) -> Files:
    """The checkpoints in a kubelet's directory, or in a copy of it.

    Raises:
        NoStateError: there is none of the CPU Manager and none of the Memory Manager.
        DocumentError: a file cannot be read, or is no file of sane size.
    """
    found = read(folder)
    if not found.keys() & {CPU, MEMORY}:
        raise NoStateError(
            f"{folder}: found neither {CPU} nor {MEMORY}; name a copy of /var/lib/kubelet"
        )
    return found


def read(folder: Path) -> Files:
    """The checkpoints that are in a directory.

    Raises:
        DocumentError: one cannot be read, or is no file of sane size.
    """
    return {
        name: door.read(folder / name, most=MOST_BYTES)
        for name in NAMES
        if os.path.lexists(folder / name)
    }


def write(folder: Path, found: Mapping[str, bytes]) -> None:
    """Puts checkpoints into a directory."""
    for name, content in found.items():
        files.write(folder / name, content)


def holders(found: Mapping[str, bytes]) -> tuple[str, ...]:
    """The uids of the pods that hold something by the files, sorted."""
    uids: set[str] = set()
    for name in (CPU, MEMORY):
        try:
            document = json.loads(found.get(name, b"{}"))
        except (ValueError, RecursionError):
            continue
        entries = document.get("entries") if isinstance(document, dict) else None
        if isinstance(entries, dict):
            uids |= entries.keys()
    return tuple(sorted(uids))
