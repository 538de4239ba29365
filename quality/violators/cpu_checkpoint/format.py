"""Violators of the requirements of the CPU Manager's checkpoint: when and how it is written."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu, files
from numaproof.reference.checkpoints.files import CheckpointFile
from numaproof.reference.checkpoints.formats import Format, Formats
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from quality import checkpoint_changes
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("cpu-checkpoint")


def rewritten(changes: Changes, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` work on the fields that are written; ``data`` is sealed anew."""

    def dump(original: Any, *args: Any, **named: Any) -> bytes:
        document = parsed(original(*args, **named))
        change(document)
        if "data" in document:
            document["dataChecksum"] = files.checksum(f"(string){document['data']}")
        return files.encode(document)

    changes.around(cpu, "dump", dump)


older_part = partial(checkpoint_changes.older_part, "cpu manager")


def restored(changes: Changes, restore: Callable[..., Any]) -> None:
    """Lets `restore` read the file; it is given the original, the content, and the rest."""
    changes.around(cpu, "restore", restore)


format_read = partial(checkpoint_changes.format_read, "state.CPU")


def found_by(changes: Changes, change: Callable[[Format, dict[str, Any]], object]) -> None:
    """Lets `change` work on what the CPU Manager's file says, and on the format that says it."""

    def read(original: Any, self: Any, content: bytes) -> Any:
        found_as, found = original(self, content)
        if isinstance(self, cpu.CPUFormats):
            change(found_as, found)
        return found_as, found

    changes.around(Formats, "read", read)


# What is written


@seeds("CPU-CHECKPOINT-002")
def cpu_checkpoint_leaves_out_init_containers(changes: Changes) -> None:
    """A plausible author thinks that what ends before the app containers need not be recorded."""

    def save(original: Any, self: StartedNode) -> None:
        kept = self.cpus.state
        passing = [
            (pod.uid, one.name)
            for pod in self.pods.values()
            for one in pod.containers
            if one.passes and kept.of(pod.uid, one.name) is not None
        ]
        if passing:
            entries = {
                uid: {name: own for name, own in containers.items() if (uid, name) not in passing}
                for uid, containers in kept.exclusive.items()
            }
            left = {uid: containers for uid, containers in entries.items() if containers}
            free = union(kept.of(*place) or 0 for place in passing)
            free &= ~union(cpus for own in left.values() for cpus in own.values())
            self.cpus.state = dataclasses.replace(kept, shared=kept.shared | free, exclusive=left)
        original(self)
        self.cpus.state = kept

    changes.around(StartedNode, "save", save)


# The part for earlier releases


@seeds("CPU-CHECKPOINT-026")
def older_cpu_fields_hold_pod_entries(changes: Changes) -> None:
    """A plausible author writes in the older part all that there is."""

    def seal(original: Any, self: Format, content: Any) -> Any:
        more = cpu.version_3("state.CPUManagerCheckpointV3")
        return original(more if content.get("podEntries") else self, content)

    older_part(changes, seal)


@seeds("CPU-CHECKPOINT-026")
def older_cpu_fields_are_hashed_by_their_new_name(changes: Changes) -> None:
    """A plausible author hashes the older part by the structure's present name."""
    older_part(changes, checkpoint_changes.hashed_by_present_name)


# When the file is written


def _at_start(changes: Changes, skips: Callable[[Any], bool]) -> None:
    """Lets a start create no file for a state that `skips` says so of."""
    starting: list[bool] = []

    def start_cpus(original: Any, *args: Any) -> Any:
        starting.append(True)
        try:
            return original(*args)
        finally:
            starting.pop()

    def write(original: Any, self: CheckpointFile[Any], state: Any) -> None:
        if not (starting and self.read() is None and skips(state)):
            original(self, state)

    changes.around(startup, "start_cpus", start_cpus)
    changes.around(CheckpointFile, "write", write)


@seeds("CPU-CHECKPOINT-012")
def policy_none_creates_no_cpu_checkpoint(changes: Changes) -> None:
    """A plausible author thinks that only the static policy has a state."""
    _at_start(changes, lambda state: not state.shared and not state.exclusive)


@seeds("CPU-CHECKPOINT-020")
def admission_without_cpus_writes_the_cpu_checkpoint(changes: Changes) -> None:
    """A plausible author writes the file at the end of every admission."""

    def admit(original: Any, self: StartedNode, args: Any) -> Any:
        admitted = original(self, args)
        self.cpus.file.write(self.cpus.state)
        return admitted

    changes.around(StartedNode, "admit", admit)
