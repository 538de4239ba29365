"""Violators of the requirements of the CPU Manager's checkpoint: its formats in the releases."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet.checkpoints import cpu, files, formats
from numaproof.reference.kubelet.checkpoints.files import CheckpointError
from numaproof.reference.kubelet.checkpoints.formats import (
    Format,
    Formats,
    TwoPartFormat,
    UnreadableError,
)
from quality.checkpoint_changes import parsed, two_parts_read
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_checkpoint.format import (
    found_by,
    restored,
    rewritten,
)

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-checkpoint")

_FIRST = "state.CPUManagerCheckpointV1"


# The first format


@seeds("CPU-CHECKPOINT-013", kubernetes="1.35")
def first_cpu_format_is_verified_by_its_new_name(changes: Changes) -> None:
    """A plausible author hashes the structure by the name that it has now."""

    def takes(original: Any, self: Format, found: Any) -> Any:
        if self.structure != _FIRST:
            return original(self, found)
        given = found["checksum"]
        return not given or given == files.checksum(self.dump(self.structure, found))

    changes.around(Format, "takes", takes)


@seeds("CPU-CHECKPOINT-013", kubernetes="1.36")
def first_cpu_format_is_not_verified(changes: Changes) -> None:
    """A plausible author no longer knows how the old release hashed, and takes the file."""
    changes.around(
        Format,
        "takes",
        lambda original, self, found: self.structure == _FIRST or original(self, found),
    )


@seeds("CPU-CHECKPOINT-013", kubernetes="1.36")
def first_cpu_format_is_read_and_forgotten(changes: Changes) -> None:
    """A plausible author reads the file of the old release, and begins with an empty state."""

    def change(found_as: Format, found: dict[str, Any]) -> None:
        if found_as.structure == _FIRST:
            found.update(defaultCpuSet="", entries={})

    found_by(changes, change)


class _AllRunning(dict[str, tuple[str, str]]):
    """Finds a container for every id."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> tuple[str, str]:
        return key, "unknown"


@seeds("CPU-CHECKPOINT-014", kubernetes="1.36")
def unknown_container_of_first_cpu_format_is_dropped(changes: Changes) -> None:
    """A plausible author takes back the CPUs of a container that is gone."""
    restored(
        changes,
        lambda original, content, policy, running, known: original(
            content, policy, _AllRunning(running), known
        ),
    )


@seeds("CPU-CHECKPOINT-014", kubernetes="1.35")
def unknown_container_of_first_cpu_format_is_not_named(changes: Changes) -> None:
    """A plausible author reports that there is an unknown container, not which one."""

    def restore(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except CheckpointError as error:
            before, found, _ = str(error).partition("containerID '")
            if not found:
                raise
            raise CheckpointError(
                f"{before}container not found in initial containers list"
            ) from None

    restored(changes, restore)


# What pods have as a whole, in 1.36


def _with_formats(changes: Changes, change: Callable[[cpu.CPUFormats], cpu.CPUFormats]) -> None:
    """Lets files be read and written in other formats."""
    changes.around(
        cpu,
        "dump",
        lambda original, state, policy, formats: original(state, policy, change(formats)),
    )
    restored(
        changes,
        lambda original, content, policy, running, known: original(
            content, policy, running, change(known)
        ),
    )


@seeds("CPU-CHECKPOINT-019", kubernetes="1.36")
def pod_entries_need_no_gate(changes: Changes) -> None:
    """A plausible author writes one format, whether there can be pod entries or not."""
    newest = cpu.version_3("state.CPUManagerCheckpoint")
    _with_formats(
        changes,
        lambda known: dataclasses.replace(
            known, attempts=(newest, *known.attempts), written=newest
        ),
    )


@seeds("CPU-CHECKPOINT-019", kubernetes="1.36")
def pod_entries_are_not_written(changes: Changes) -> None:
    """A plausible author writes what containers have, which is all that earlier releases wrote."""
    _with_formats(
        changes,
        lambda known: dataclasses.replace(
            known, written=cpu.version_2("state.CPUManagerCheckpointV2")
        ),
    )


@seeds("CPU-CHECKPOINT-019", kubernetes="1.36")
def gate_for_pod_entries_ends_the_earlier_format(changes: Changes) -> None:
    """A plausible author reads the format that he writes, once the gate is on."""
    _with_formats(
        changes,
        lambda known: (
            dataclasses.replace(known, attempts=known.attempts[:1]) if known.keeps_pods else known
        ),
    )


# Data


@seeds("CPU-CHECKPOINT-021")
def cpu_data_needs_the_gate(changes: Changes) -> None:
    """A plausible author writes the new format where there may be something new to say."""
    _with_formats(
        changes,
        lambda known: (
            known
            if known.keeps_pods or known.keeps_baselines
            else dataclasses.replace(known, written=cpu.version_2("state.CPUManagerCheckpointV2"))
        ),
    )


@seeds("CPU-CHECKPOINT-021")
def cpu_data_checksum_is_of_the_bare_text(changes: Changes) -> None:
    """A plausible author hashes the text itself, not Go's dump of it."""

    def checksum(original: Any, dump: str) -> Any:
        return original(dump.removeprefix("(string)") if '"defaultCpuSet"' in dump else dump)

    changes.around(files, "checksum", checksum)


@seeds("CPU-CHECKPOINT-021")
def cpu_data_is_an_object(changes: Changes) -> None:
    """A plausible author puts the state there as it is, not as a text."""

    def dump(original: Any, *args: Any, **named: Any) -> bytes:
        document = parsed(original(*args, **named))
        if "data" in document:
            document["data"] = parsed(document["data"].encode())
        return files.encode(document)

    def restore(original: Any, content: bytes, *rest: Any) -> Any:
        document = parsed(content)
        if isinstance(document.get("data"), dict):
            text = files.encode(document["data"]).decode()
            content = files.encode({**document, "data": text})
        return original(content, *rest)

    changes.around(cpu, "dump", dump)
    restored(changes, restore)


_two_parts_read = partial(two_parts_read, "cpu manager")


@seeds("CPU-CHECKPOINT-022")
def cpu_checksum_besides_data_is_verified_too(changes: Changes) -> None:
    """A plausible author verifies both checksums."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        try:
            self.old.read(content)
        except UnreadableError as error:
            raise CheckpointError(f"could not load v4 checkpoint: {error}") from None
        return found

    _two_parts_read(changes, read)


@seeds("CPU-CHECKPOINT-022")
def cpu_fields_besides_data_win(changes: Changes) -> None:
    """A plausible author takes from data only what earlier releases do not have."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        try:
            old = self.old.read(content)
        except UnreadableError:
            return found
        return {**found, **{name: old[name] for name in ("defaultCpuSet", "entries")}}

    _two_parts_read(changes, read)


@seeds("CPU-CHECKPOINT-022")
def cpu_policy_is_read_besides_data(changes: Changes) -> None:
    """A plausible author checks the policy before he opens data."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        found = original(self, content)
        return {**found, "policyName": parsed(content).get("policyName", found["policyName"])}

    _two_parts_read(changes, read)


@seeds("CPU-CHECKPOINT-023")
def unreadable_cpu_data_falls_back_on_older_fields(changes: Changes) -> None:
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


@seeds("CPU-CHECKPOINT-023")
def cpu_data_checksum_is_not_verified(changes: Changes) -> None:
    """A plausible author verifies the checksum that he knows."""
    changes.around(
        TwoPartFormat,
        "takes",
        lambda original, self, found: self.manager == "cpu manager" or original(self, found),
    )


@seeds("CPU-CHECKPOINT-023")
def missing_cpu_data_checksum_is_taken(changes: Changes) -> None:
    """A plausible author needs no checksum here either, as he needs none of the older fields."""
    changes.around(
        TwoPartFormat,
        "takes",
        lambda original, self, found: (
            original(self, found)
            or (self.manager == "cpu manager" and bool(found["data"]) and not found["dataChecksum"])
        ),
    )


@seeds("CPU-CHECKPOINT-023")
def lost_cpu_data_falls_back_on_older_fields(changes: Changes) -> None:
    """A plausible author knows the new format by its data, though the checksum of it is there."""

    def read(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError as error:
            if parsed(content).get("data"):
                raise
            raise UnreadableError(str(error), {}) from None

    _two_parts_read(changes, read)


@seeds("CPU-CHECKPOINT-024")
def first_cpu_format_is_still_known(changes: Changes) -> None:
    """A plausible author goes on reading what every release before read."""

    def read(original: Any, self: Formats, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError:
            if not isinstance(self, cpu.CPUFormats):
                raise
            first = cpu.version_1()
            try:
                return first, {**first.read(content), "podEntries": None}
            except UnreadableError:
                pass
            raise

    changes.around(Formats, "read", read)


@seeds("CPU-CHECKPOINT-024")
def cpu_checkpoint_without_data_is_refused(changes: Changes) -> None:
    """A plausible author wants data in every file."""
    _with_formats(changes, lambda known: dataclasses.replace(known, attempts=known.attempts[:1]))


@seeds("CPU-CHECKPOINT-024")
def cpu_checkpoint_with_pod_entries_is_refused(changes: Changes) -> None:
    """A plausible author forgets what 1.36 wrote with its gate on."""
    _with_formats(
        changes,
        lambda known: dataclasses.replace(known, attempts=(known.attempts[0], *known.attempts[2:])),
    )


# Baselines


@seeds("CPU-CHECKPOINT-025")
def baselines_stand_besides_data(changes: Changes) -> None:
    """A plausible author adds the field where the others are."""

    def move(document: dict[str, Any]) -> None:
        data = parsed(document.get("data", "").encode())
        baselines = data.pop("baselines", None)
        if baselines:
            document["data"] = files.encode(data).decode()
            document["baselines"] = baselines

    rewritten(changes, move)


@seeds("CPU-CHECKPOINT-025")
def containers_of_earlier_releases_get_no_baseline(changes: Changes) -> None:
    """A plausible author notes what is given from now on."""

    def restore(original: Any, *args: Any) -> Any:
        state = original(*args)
        if state.baselines is not state.exclusive:
            return state
        return dataclasses.replace(state, baselines={})

    restored(changes, restore)


@seeds("CPU-CHECKPOINT-025")
def restart_makes_new_baselines(changes: Changes) -> None:
    """A plausible author takes what containers have at the start for what they were given first."""

    def restore(original: Any, *args: Any) -> Any:
        state = original(*args)
        return state and dataclasses.replace(
            state, baselines=None if state.baselines is None else state.exclusive
        )

    restored(changes, restore)
