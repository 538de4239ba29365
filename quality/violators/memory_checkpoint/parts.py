"""Violators of the requirements of the memory checkpoint: ``data``, and the fields besides."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet.checkpoints import files, formats, memory
from numaproof.reference.kubelet.checkpoints.files import CheckpointError
from numaproof.reference.kubelet.checkpoints.formats import (
    Format,
    TwoPartFormat,
    UnreadableError,
)
from quality.checkpoint_changes import parsed, two_parts_read
from quality.seeding import Changes, SubjectBugs
from quality.violators.memory_checkpoint.format import restored

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-checkpoint")


@seeds("MEM-CHECKPOINT-012")
def memory_data_needs_the_gate(changes: Changes) -> None:
    """A plausible author writes the new format where there may be something new to say."""
    older = memory.version_1("state.MemoryManagerCheckpointV1", takes_no_checksum=True)
    changes.around(
        memory,
        "dump",
        lambda original, state, policy, formats: original(
            state,
            policy,
            formats if formats.keeps_pods else dataclasses.replace(formats, written=older),
        ),
    )


@seeds("MEM-CHECKPOINT-012")
def memory_data_checksum_is_of_the_bare_text(changes: Changes) -> None:
    """A plausible author hashes the text itself, not Go's dump of it."""

    def checksum(original: Any, dump: str) -> Any:
        return original(dump.removeprefix("(string)") if '"machineState"' in dump else dump)

    changes.around(files, "checksum", checksum)


@seeds("MEM-CHECKPOINT-012")
def memory_data_has_no_machine_state(changes: Changes) -> None:
    """A plausible author does not write the machine state twice."""

    def sealed(document: dict[str, Any], data: dict[str, Any]) -> bytes:
        text = files.encode(data).decode()
        return files.encode(
            {**document, "data": text, "dataChecksum": files.checksum(f"(string){text}")}
        )

    def dump(original: Any, *args: Any, **named: Any) -> bytes:
        content: bytes = original(*args, **named)
        document = parsed(content)
        if "data" not in document:
            return content
        data = parsed(document["data"].encode())
        data.pop("machineState", None)
        return sealed(document, data)

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        document = parsed(content)
        text = document.get("data")
        data = parsed(text.encode()) if isinstance(text, str) else {}
        whole = document.get("dataChecksum") == files.checksum(f"(string){text}")
        if data and whole and "machineState" not in data and "machineState" in document:
            content = sealed(document, {**data, "machineState": document["machineState"]})
        return original(content, *rest)

    changes.around(memory, "dump", dump)
    restored(changes, restore)


_two_parts_read = partial(two_parts_read, "memory manager")


@seeds("MEM-CHECKPOINT-013")
def memory_checksum_besides_data_is_verified_too(changes: Changes) -> None:
    """A plausible author verifies both checksums."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        try:
            self.old.read(content)
        except UnreadableError as error:
            raise CheckpointError(f"could not load v3 checkpoint: {error}") from None
        return found

    _two_parts_read(changes, read)


@seeds("MEM-CHECKPOINT-013")
def machine_state_is_read_besides_data(changes: Changes) -> None:
    """A plausible author takes from data what is said of containers and pods alone."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        try:
            return {**found, "machineState": self.old.read(content)["machineState"]}
        except UnreadableError as error:
            return {**found, "machineState": error.found.get("machineState")}

    _two_parts_read(changes, read)


@seeds("MEM-CHECKPOINT-013")
def memory_policy_is_read_besides_data(changes: Changes) -> None:
    """A plausible author checks the policy before he opens data."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        return {**found, "policyName": parsed(content).get("policyName", found["policyName"])}

    _two_parts_read(changes, read)


@seeds("MEM-CHECKPOINT-014")
def unreadable_memory_data_falls_back_on_older_fields(changes: Changes) -> None:
    """A plausible author reads the older fields where data is damaged."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        try:
            return original(self, content)
        except UnreadableError:
            raise
        except CheckpointError as error:
            if formats.CORRUPTED in str(error):
                raise
            raise UnreadableError(str(error), {}) from None

    _two_parts_read(changes, read)


@seeds("MEM-CHECKPOINT-014")
def memory_data_with_wrong_checksum_falls_back_on_older_fields(changes: Changes) -> None:
    """A plausible author reads the older fields where the checksum of data is wrong."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        try:
            return original(self, content)
        except UnreadableError:
            raise
        except CheckpointError as error:
            if formats.CORRUPTED not in str(error):
                raise
            raise UnreadableError(str(error), {}) from None

    _two_parts_read(changes, read)


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
