"""Violators of the requirements of the memory checkpoint: ``data``, and the fields besides."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet.checkpoints import memory
from numaproof.reference.kubelet.checkpoints.files import CheckpointError
from numaproof.reference.kubelet.checkpoints.formats import (
    Format,
    TwoPartFormat,
    UnreadableError,
)
from quality.checkpoint_changes import parsed, two_parts_read
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

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


def older_part(changes: Changes, seal: Callable[..., dict[str, Any]]) -> None:
    """Lets `seal` seal the part for earlier releases."""
    writing: list[bool] = []

    def write(original: Any, self: TwoPartFormat, content: Any) -> Any:
        writing.append(self.manager == "memory manager")
        try:
            return original(self, content)
        finally:
            writing.pop()

    def sealed(original: Any, self: Format, content: Any) -> Any:
        return seal(original, self, content) if any(writing) else original(self, content)

    changes.around(TwoPartFormat, "write", write)
    changes.around(Format, "sealed", sealed)


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

    def seal(original: Any, self: Format, content: Any) -> Any:
        return original(dataclasses.replace(self, takes_checksum_of=(self.structure,)), content)

    older_part(changes, seal)


@seeds("MEM-CHECKPOINT-015")
def older_memory_fields_have_no_checksum(changes: Changes) -> None:
    """A plausible author hashes data alone; only 1.36 takes the rest without a checksum."""

    def seal(original: Any, self: Format, content: Any) -> Any:
        return {**original(self, content), "checksum": 0}

    older_part(changes, seal)
