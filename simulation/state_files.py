"""The checkpoint files of a node: where they are, who holds resources, and the reference's copy.

The reference keeps the Device Manager's checkpoint in a format of its own. A kubelet's file has to
be translated before the reference can start from it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.reference.checkpoints import cpu, devices, files, memory
from numaproof.simulation import device_checkpoint
from numaproof.simulation.checkpoint_damage import conversion

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol import messages

CPU, MEMORY, DEVICES = cpu.FILE_NAME, memory.FILE_NAME, devices.FILE_NAME
NAMES = (CPU, MEMORY, DEVICES)
"""The checkpoints of the CPU, Memory and Device Managers, relative to the kubelet's directory."""

BY_STAGE = {"cpu": CPU, "memory": MEMORY}
"""The file that causes a refusal at each stage."""

STATE_DIR = "/var/lib/kubelet"
"""The kubelet's default directory for checkpoints."""

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a checkpoint file, ten times that of a node with a thousand pods."""

Files = dict[str, bytes]
"""The contents of checkpoint files by their names in `NAMES`."""


class NoStateError(ValueError):
    """A directory contains none of the managers' checkpoints; the message names the directory."""


def paths(folder: Path) -> dict[str, Path]:
    """Returns the checkpoints that exist in a directory, by name.

    The directory is the kubelet's or a copy of it, a copy of a root file system, or a directory
    with nothing but the files.
    """
    found = {}
    for name in NAMES:
        places = (folder / name, folder / STATE_DIR.lstrip("/") / name, folder / _last(name))
        for place in places:
            if os.path.lexists(place):
                found[name] = place
                break
    return found


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def load_files(folder: Path, name: str = "") -> Files:
    """Reads the checkpoints in a kubelet's directory, or in a copy of it; messages call it `name`.

    Raises:
        NoStateError: there is no checkpoint of the CPU Manager or the Memory Manager.
        DocumentError: a file cannot be read, is not a regular file, or is too large.
    """
    found = read_files(folder, name)
    if not found.keys() & {CPU, MEMORY}:
        message = f"{name or folder}: found neither {CPU} nor {MEMORY}; use a copy of {STATE_DIR}"
        raise NoStateError(message)
    return found


def read_files(folder: Path, name: str = "") -> Files:
    """Reads the checkpoints that exist in a directory; messages call it `name`.

    Raises:
        DocumentError: a file cannot be read, is not a regular file, is too large, or is not as the
            kubelet wrote it.
    """
    found = {}
    for file, place in paths(folder).items():
        shown = f"{name or folder}/{place.relative_to(folder)}"
        found[file] = door.read(place, name=shown, most=MAX_BYTES)
        if converted := conversion(found[file]):
            message = f"not a checkpoint as a kubelet writes it: {converted}"
            raise DocumentError(shown, 0, "", message)
    return found


_RECORDING = {CPU: ("cpuManagerPolicy", "static"), MEMORY: ("memoryManagerPolicy", "Static")}
"""The setting with which a manager records pods in its file."""


def absent_files(
    contents: Container[str], config: Mapping[str, Any], *, has_devices: bool = False
) -> tuple[str, ...]:
    """Returns the files that record pods on the node but are not among `contents`.

    What pods hold according to them is then unknown.
    """
    recording = [name for name, (field, value) in _RECORDING.items() if config.get(field) == value]
    recording += [DEVICES] if has_devices else []
    return tuple(name for name in recording if name not in contents)


def recording_files(contents: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yields the files of managers that record pods, with their policies."""
    for name, (_, policy) in _RECORDING.items():
        if fields(contents.get(name, b"")).get("policyName") == policy:
            yield name, policy


def refused_file(refusal: messages.StartRefused) -> str:
    """Returns the file that is the cause of a refusal; empty if it is the configuration."""
    is_file = refusal.message.startswith(f"start {refusal.stage} manager error")
    return BY_STAGE.get(refusal.stage, "") if is_file else ""


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes checkpoints to a directory."""
    for name, content in contents.items():
        files.write(folder / name, content)


def for_reference(contents: Mapping[str, bytes], kubernetes: str) -> Files:
    """Returns the files in the formats of the reference.

    A Device Manager's checkpoint that a kubelet of the release cannot read is left out: the kubelet
    starts without it.
    """
    found = dict(contents)
    content = found.pop(DEVICES, None)
    if content is not None:
        recorded = device_checkpoint.recorded_devices(content, kubernetes)
        if recorded is not None:
            found[DEVICES] = devices.dump(recorded.state())
    return found


def holders(contents: Mapping[str, bytes]) -> tuple[str, ...]:
    """Returns the sorted uids of the pods that hold resources according to the files."""
    return tuple(sorted({uid for _, uid, _ in entries(contents)}))


def entries(contents: Mapping[str, bytes]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields what the files record: the file, the pod's uid, and the entries of its containers.

    The entries are those of the file: a list of CPUs, a list of memory blocks, or lists of devices
    by resource. Content that is not a checkpoint is skipped.
    """
    for name, content in contents.items():
        found = fields(content)
        recorded = device_checkpoint.entries(found) if name == DEVICES else found.get("entries")
        for uid, containers in recorded.items() if isinstance(recorded, dict) else ():
            if isinstance(containers, dict):
                yield name, uid, containers


_SPELLING = {
    name.casefold(): name
    for name in ("policyName", "defaultCpuSet", "entries", "podEntries", "machineState")
}


def fields(content: bytes | str) -> dict[str, Any]:
    """Returns the fields of a checkpoint; empty if it is not a JSON object.

    In a file with two parts, these are the fields in ``data``, the part that the kubelet uses. The
    names of the managers' fields may be in any case, as for Go.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    data = found.get("data")
    inner = fields(data) if isinstance(data, str) else {}
    return inner or {
        _SPELLING.get(name.casefold(), str(name)): value for name, value in found.items()
    }
