"""Violators of the requirements of the CPU Manager's checkpoint: its formats in the releases."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import cpu
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import (
    Format,
    Formats,
    TwoPartFormat,
    UnreadableError,
)
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_checkpoint.format import (
    found_by,
    restored,
)

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-checkpoint")

_FIRST = "state.CPUManagerCheckpointV1"


# The first format


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


# Data


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
def restart_makes_new_baselines(changes: Changes) -> None:
    """A plausible author takes what containers have at the start for what they were given first."""

    def restore(original: Any, *args: Any) -> Any:
        state = original(*args)
        return state and dataclasses.replace(
            state, baselines=None if state.baselines is None else state.exclusive
        )

    restored(changes, restore)
