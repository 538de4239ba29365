"""Violators of the requirements of the CPU Manager's checkpoint: how a file is judged at start."""

from __future__ import annotations

from typing import Any

from numaproof.reference.checkpoints import cpu, files, formats
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import Format, Formats, UnreadableError
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_checkpoint.format import (
    format_read,
    restored,
)

seeds = SubjectBugs("cpu-checkpoint")

SPACE = b" \t\r\n"
KNOWN = frozenset(
    {"policyname", "defaultcpuset", "entries", "podentries", "checksum", "data", "datachecksum"}
)


# The checksum that is read


# Unknown fields and white space


def _unknown(content: bytes) -> list[str]:
    return [name for name in parsed(content) if name.lower() not in KNOWN]


@seeds("CPU-CHECKPOINT-010")
def unknown_field_of_cpu_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author decodes strictly."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        for name in _unknown(content):
            raise CheckpointError(f'json: unknown field "{name}"')
        return original(content, *rest)

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-010")
def unknown_field_counts_in_the_cpu_checksum(changes: Changes) -> None:
    """A plausible author hashes the whole document that was read."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        found = original(self, content)
        if found["checksum"] and _unknown(content):
            raise UnreadableError(formats.CORRUPTED, found)
        return found

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-011")
def newline_after_cpu_checkpoint_is_refused(changes: Changes) -> None:
    """A plausible author wants the file to end with the JSON."""

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        if content.strip(SPACE) and content[-1:] in SPACE:
            raise CheckpointError(r"invalid character '\n' after top-level value")
        return original(content, *rest)

    restored(changes, restore)


# Another policy


# What is no checkpoint


@seeds("CPU-CHECKPOINT-009")
def wrong_type_names_the_format_before_the_last(changes: Changes) -> None:
    """A plausible author keeps an error until the next format works, and reports an early one."""

    def read(original: Any, self: Formats, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError as error:
            if not isinstance(self, cpu.CPUFormats) or "cannot unmarshal" not in str(error):
                raise
            try:
                self.attempts[-2].read(content)
            except UnreadableError as earlier:
                raise CheckpointError(str(earlier)) from None
            raise

    changes.around(Formats, "read", read)


@seeds("CPU-CHECKPOINT-009")
def cpu_checksum_may_be_a_text(changes: Changes) -> None:
    """A plausible author reads a number in quotes as the number."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        document = parsed(content)
        text = document.get("checksum")
        if isinstance(text, str) and text.isdecimal():
            return original(self, files.encode({**document, "checksum": int(text)}))
        return original(self, content)

    format_read(changes, read)


@seeds("CPU-CHECKPOINT-009")
def list_of_cpu_entries_counts_as_none(changes: Changes) -> None:
    """A plausible author passes over entries that are no map."""

    def read(original: Any, self: Format, content: bytes) -> Any:
        document = parsed(content)
        if isinstance(document.get("entries"), list):
            return original(self, files.encode({**document, "entries": {}}))
        return original(self, content)

    format_read(changes, read)
