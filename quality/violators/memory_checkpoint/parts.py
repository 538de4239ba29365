"""Violators of the requirements of the memory checkpoint: ``data``, and the fields besides."""

from __future__ import annotations

from functools import partial
from typing import Any

from numaproof.reference.checkpoints import memory
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import (
    Format,
    TwoPartFormat,
    UnreadableError,
)
from quality import checkpoint_changes
from quality.checkpoint_changes import parsed, two_parts_read
from quality.seeding import Changes, SubjectBugs

seeds = SubjectBugs("memory-checkpoint")


_two_parts_read = partial(two_parts_read, "memory manager")


@seeds("MEM-CHECKPOINT-014")
def missing_memory_data_checksum_is_taken(changes: Changes) -> None:
    """A plausible author needs no checksum here either, as he needs none of the older fields."""
    changes.around(
        TwoPartFormat,
        "takes",
        lambda original, self, found: (
            original(self, found)
            or (
                self.manager == "memory manager"
                and bool(found["data"])
                and not found["dataChecksum"]
            )
        ),
    )


@seeds("MEM-CHECKPOINT-014")
def lost_memory_data_falls_back_on_older_fields(changes: Changes) -> None:
    """A plausible author knows the new format by its data, though the checksum of it is there."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError as error:
            if parsed(content).get("data"):
                raise
            raise UnreadableError(str(error), {}) from None

    _two_parts_read(changes, read)


older_part = partial(checkpoint_changes.older_part, "memory manager")


@seeds("MEM-CHECKPOINT-015")
def older_memory_fields_hold_pod_entries(changes: Changes) -> None:
    """A plausible author writes in the older part all that there is."""

    def seal(original: Any, self: Format, content: Any) -> Any:
        more = memory.version_2("state.MemoryManagerCheckpointV2")
        return original(more if content.get("podEntries") else self, content)

    older_part(changes, seal)


@seeds("MEM-CHECKPOINT-015")
def older_memory_fields_are_hashed_by_their_new_name(changes: Changes) -> None:
    """A plausible author hashes the older part by the structure's present name."""
    older_part(changes, checkpoint_changes.hashed_by_present_name)


@seeds("MEM-CHECKPOINT-015")
def older_memory_fields_have_no_checksum(changes: Changes) -> None:
    """A plausible author hashes data alone; only 1.36 takes the rest without a checksum."""

    def seal(original: Any, self: Format, content: Any) -> Any:
        return {**original(self, content), "checksum": 0}

    older_part(changes, seal)
