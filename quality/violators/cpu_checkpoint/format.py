"""Violators of the requirements of the CPU Manager's checkpoint: when and how it is written."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.topology import union
from numaproof.reference.kubelet.checkpoints import cpu, files
from numaproof.reference.kubelet.checkpoints.files import CheckpointFile
from numaproof.reference.kubelet.checkpoints.formats import Format, Formats, TwoPartFormat
from numaproof.reference.kubelet.cpulist import parse as parse_cpus
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


def older_part(changes: Changes, seal: Callable[..., dict[str, Any]]) -> None:
    """Lets `seal` seal the part for earlier releases.

    It is given what seals it otherwise, the format, and the state's fields.
    """
    writing: list[bool] = []

    def write(original: Any, self: TwoPartFormat, content: Any) -> Any:
        writing.append(self.manager == "cpu manager")
        try:
            return original(self, content)
        finally:
            writing.pop()

    def sealed(original: Any, self: Format, content: Any) -> Any:
        return seal(original, self, content) if any(writing) else original(self, content)

    changes.around(TwoPartFormat, "write", write)
    changes.around(Format, "sealed", sealed)


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


@seeds("CPU-CHECKPOINT-001")
def cpu_checkpoint_spells_the_pool_as_go_does(changes: Changes) -> None:
    """A plausible author names the field as Go's structure does; Go reads either."""

    def spell(document: dict[str, Any]) -> None:
        fields = {name.replace("CpuSet", "CPUSet"): value for name, value in document.items()}
        if "data" in fields:
            fields["data"] = fields["data"].replace('"defaultCpuSet"', '"defaultCPUSet"')
        document.clear()
        document.update(fields)

    rewritten(changes, spell)


@seeds("CPU-CHECKPOINT-001")
def cpu_checkpoint_has_one_container_of_each_pod(changes: Changes) -> None:
    """A plausible author keys the entries by pod alone, so that the last container wins."""

    def last(content: dict[str, Any]) -> dict[str, Any]:
        entries = {uid: dict([*own.items()][-1:]) for uid, own in content["entries"].items()}
        return {**content, "entries": entries}

    older_part(changes, lambda original, format_, content: original(format_, last(content)))


@seeds("CPU-CHECKPOINT-002")
def cpu_checkpoint_waits_for_the_reconcile_loop(changes: Changes) -> None:
    """A plausible author writes the file in the reconcile loop only."""
    busy: list[bool] = []

    def without_saving(original: Any, self: StartedNode, args: Any) -> Any:
        busy.append(True)
        try:
            return original(self, args)
        finally:
            busy.pop()

    for operation in ("admit", "hints", "state"):
        changes.around(StartedNode, operation, without_saving)
    changes.around(CPUManager, "save", lambda original, self: None if busy else original(self))


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


@seeds("CPU-CHECKPOINT-002")
def cpu_checkpoint_lists_assigned_cpus_in_the_pool(changes: Changes) -> None:
    """A plausible author writes the CPUs that may be shared, not those that are left."""

    def whole(content: dict[str, Any]) -> dict[str, Any]:
        shared = parse_cpus(content["defaultCpuSet"]).mask
        for containers in content["entries"].values():
            for text in containers.values():
                shared |= parse_cpus(text).mask
        return {**content, "defaultCpuSet": str(CPUSet.from_mask(shared))}

    older_part(changes, lambda original, format_, content: original(format_, whole(content)))


@seeds("CPU-CHECKPOINT-003")
def cpu_checkpoint_ends_with_a_newline(changes: Changes) -> None:
    """A plausible author ends a text file with a newline."""
    changes.around(cpu, "dump", lambda original, *args, **named: original(*args, **named) + b"\n")


@seeds("CPU-CHECKPOINT-003")
def cpu_checkpoint_is_not_compact(changes: Changes) -> None:
    """A plausible author lets a JSON library put a space behind each comma and colon."""
    changes.around(
        cpu,
        "dump",
        lambda original, *args, **named: json.dumps(parsed(original(*args, **named))).encode(),
    )


@seeds("CPU-CHECKPOINT-003")
def cpu_checkpoint_has_empty_entries(changes: Changes) -> None:
    """A plausible author writes an empty map where there are no entries."""

    def with_entries(document: dict[str, Any]) -> None:
        if "entries" not in document:
            fields = list(document.items())
            fields.insert(2, ("entries", {}))
            document.clear()
            document.update(fields)

    rewritten(changes, with_entries)


@seeds("CPU-CHECKPOINT-003")
def cpu_entries_stand_in_order_of_admission(changes: Changes) -> None:
    """A plausible author writes a map in the order in which it was filled."""

    def dump(original: Any, state: Any, *args: Any, **named: Any) -> bytes:
        document = parsed(original(state, *args, **named))
        if "entries" in document:
            entries = document["entries"]
            document["entries"] = {
                uid: {name: entries[uid][name] for name in containers}
                for uid, containers in state.exclusive.items()
            }
        return files.encode(document)

    changes.around(cpu, "dump", dump)


@seeds("CPU-CHECKPOINT-003")
def cpu_checkpoint_fields_are_sorted(changes: Changes) -> None:
    """A plausible author sorts all keys, not those of maps alone."""

    def arrange(document: dict[str, Any]) -> None:
        fields = sorted(document.items())
        document.clear()
        document.update(fields)

    rewritten(changes, arrange)


@seeds("CPU-CHECKPOINT-004")
def cpu_checksum_is_fnv_1(changes: Changes) -> None:
    """A plausible author multiplies before the exclusive or: FNV-1, not FNV-1a."""

    def fnv_1(original: Any, dump: str) -> int:
        if not dump.startswith("(*state.CPU"):
            found: int = original(dump)
            return found
        number = 0x811C9DC5
        for byte in dump.encode():
            number = number * 0x01000193 % (1 << 32) ^ byte
        return number

    changes.around(files, "checksum", fnv_1)


@seeds("CPU-CHECKPOINT-004")
def cpu_checksum_is_of_the_json(changes: Changes) -> None:
    """A plausible author hashes the JSON with checksum zero, not the textual dump."""

    def seal(original: Any, self: Format, content: Any) -> Any:
        document = original(self, content)
        text = files.encode({**document, "checksum": 0}).decode()
        return {**document, "checksum": files.checksum(text)}

    older_part(changes, seal)


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

    def seal(original: Any, self: Format, content: Any) -> Any:
        return original(dataclasses.replace(self, takes_checksum_of=(self.structure,)), content)

    older_part(changes, seal)


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
def cpu_checkpoint_comes_with_the_first_assignment(changes: Changes) -> None:
    """A plausible author creates the file when there is something to write."""
    _at_start(changes, lambda state: True)


@seeds("CPU-CHECKPOINT-012")
def policy_none_creates_no_cpu_checkpoint(changes: Changes) -> None:
    """A plausible author thinks that only the static policy has a state."""
    _at_start(changes, lambda state: not state.shared and not state.exclusive)


@seeds("CPU-CHECKPOINT-020")
def start_writes_the_cpu_checkpoint_again(changes: Changes) -> None:
    """A plausible author writes down at start what was read."""

    def start_cpus(original: Any, *args: Any) -> CPUManager:
        manager: CPUManager = original(*args)
        manager.file.write(manager.state)
        return manager

    changes.around(startup, "start_cpus", start_cpus)


@seeds("CPU-CHECKPOINT-020")
def admission_without_cpus_writes_the_cpu_checkpoint(changes: Changes) -> None:
    """A plausible author writes the file at the end of every admission."""

    def admit(original: Any, self: StartedNode, args: Any) -> Any:
        admitted = original(self, args)
        self.cpus.file.write(self.cpus.state)
        return admitted

    changes.around(StartedNode, "admit", admit)
