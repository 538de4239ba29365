"""Names what is wrong with a checkpoint file that a kubelet can't read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.reference.checkpoints import cpu, memory
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import TwoPartFormat, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.reference.checkpoints.formats import Format

_WORDS = ("true", "false", "null")

_WRITERS: dict[str, tuple[tuple[str, Format | TwoPartFormat], ...]] = {
    cpu.FILE_NAME: (
        ("1.37 or later", cpu.version_4()),
        ("1.36 with PodLevelResourceManagers", cpu.version_3("state.CPUManagerCheckpoint")),
        (
            "1.18 to 1.36",
            cpu.version_2("state.CPUManagerCheckpoint", "state.CPUManagerCheckpointV2"),
        ),
        ("1.17 or earlier", cpu.version_1()),
    ),
    memory.FILE_NAME: (
        ("1.37 or later", memory.version_3()),
        ("1.36 with PodLevelResourceManagers", memory.version_2("state.MemoryManagerCheckpoint")),
        (
            "1.21 to 1.36",
            memory.version_1(
                "state.MemoryManagerCheckpoint",
                "state.MemoryManagerCheckpointV1",
                takes_no_checksum=False,
            ),
        ),
    ),
}
"""The releases that write each format of a file."""


def syntax_damage(content: bytes) -> str:
    """Returns what is wrong with the JSON of a file; empty if it is valid."""
    size = plural(len(content), "byte")
    if not content.strip():
        return f"the file is empty ({size})"
    if not content.strip(b"\0"):
        return f"the file contains only zeros ({size}), as after a crash of the machine"
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos :]
        string = error.msg.startswith("Unterminated string")
        if string or not rest.strip() or any(word.startswith(rest) for word in _WORDS):
            return f"the file is truncated at byte {len(content)}: its JSON isn't complete"
        return f"not JSON at byte {len(error.doc[: error.pos].encode())}: {error.msg}"
    except (ValueError, RecursionError):
        return "not JSON"
    return ""


_CONVERSIONS = (
    ((b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh"), "it is compressed"),
    ((b"\xef\xbb\xbf",), "it begins with a byte order mark"),
    ((b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{"), "it is UTF-16 text"),
)


def conversion(content: bytes) -> str:
    """Returns how a copy of a file was converted, and the fix; empty if it was not.

    No kubelet writes such a file.
    """
    what = next((what for starts, what in _CONVERSIONS if content.startswith(starts)), "")
    return what and f"{what}; copy the file unchanged"


def writer(content: bytes, kind: str) -> str:
    """Returns the releases whose checksums the file has; empty if it has none's."""
    if b"hecksum" not in content:
        return ""
    for releases, form in _WRITERS[kind]:
        try:
            form.read(content)
            if isinstance(form, TwoPartFormat):
                form.old.read(content)
        except UnreadableError:
            if _has_two_parts(content):
                return ""
            continue
        except CheckpointError:
            return ""
        return releases
    return ""


def _has_two_parts(content: bytes) -> bool:
    return b'"dataChecksum"' in content


def _damaged_part(content: bytes, refusal: str) -> str:
    """Returns the part of a file with the wrong checksum, if it has two."""
    if not _has_two_parts(content):
        return ""
    return " in `data`" if "could not load v" in refusal else " in the part for earlier releases"


def damage(content: bytes, kind: str, release: str, refusal: str) -> Iterator[str]:
    """Yields findings about a file that a kubelet refused with this message."""
    syntax = syntax_damage(content)
    if syntax:
        yield f"{syntax}; kubelets of every release refuse such a file"
        return
    releases = writer(content, kind)
    if "not found in initial containers list" in refusal:
        yield (
            "written by Kubernetes 1.17 or earlier, which names containers by id: it is migrated"
            " only while these containers exist"
        )
    elif "checkpoint is corrupted" in refusal or "cannot unmarshal" in refusal:
        if releases:
            yield (
                f"written by Kubernetes {releases} and not changed since: Kubernetes {release} does"
                " not read this format"
            )
        elif "checkpoint is corrupted" in refusal:
            part = _damaged_part(content, refusal)
            yield f"checksum mismatch{part}: the file is damaged, or was changed"
