"""Bugs of restarts: what checkpoints say, what is believed of them, and release gates."""

from __future__ import annotations

import dataclasses
import json
import zlib
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import devices as device_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.checkpoints.cpu import CPUFormats
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.checkpoints.formats import (
    CORRUPTED,
    Format,
    Formats,
    TwoPartFormat,
    UnreadableError,
)
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.deviations.devices import AllNodesConsidered
from numaproof.reference.deviations.releases import Release
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.state import DeviceState
from numaproof.reference.memory import policy as memory_policy
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.reference.checkpoints.formats import Content

seeds = SubjectBugs("restart")


def _of_cpus(found: Content) -> bool:
    """Whether this is what a file of the CPU Manager says."""
    return "defaultCpuSet" in found


@seeds("#86676", "CPU-CHECKPOINT-005")
def a_wrong_cpu_checksum_is_accepted(changes: Changes) -> None:
    for one in (Format, TwoPartFormat):
        changes.around(
            one, "takes", lambda original, self, found: _of_cpus(found) or original(self, found)
        )


@seeds("CPU-RESTART-001")
def a_restart_forgets_exclusive_cpus(changes: Changes) -> None:
    changes.replace(StaticCPUPolicy, "restore", lambda self, state: CPUState(self.topology.cpus))


@seeds("#124066", "CPU-ERROR-001")
def a_restart_accepts_any_set_of_cpus(changes: Changes) -> None:
    changes.replace(CPUState, "all_cpus", lambda self: -1)
    changes.around(
        StaticCPUPolicy,
        "restore",
        lambda original, self, state: state if state.shared else original(self, state),
    )


@seeds("#55736", "CPU-CHECKPOINT-007")
def another_policys_cpu_checkpoint_is_accepted(changes: Changes) -> None:
    def careless(
        original: Any, content: bytes, wanted: str, running: Any, formats: CPUFormats
    ) -> CPUState:
        error: CheckpointError | None = None
        for name in (wanted, "static", "none"):
            try:
                found: CPUState = original(content, name, running, formats)
            except CheckpointError as problem:
                error = problem
            else:
                return found
        assert error is not None
        raise error

    changes.around(cpu_checkpoint, "restore", careless)


@seeds("CPU-CHECKPOINT-002")
def the_cpu_checkpoint_is_not_written_again(changes: Changes) -> None:
    changes.replace(CPUManager, "save", lambda self: None)


@seeds("CPU-CHECKPOINT-001", "CPU-CHECKPOINT-003")
def a_first_start_writes_no_cpu_checkpoint(changes: Changes) -> None:
    def silent(original: Any, setup: Any, release: Any, state_dir: Path, present: Any) -> Any:
        path = state_dir / cpu_checkpoint.FILE_NAME
        there = path.exists()
        manager = original(setup, release, state_dir, present)
        if not there:
            path.unlink()
        return manager

    changes.around(startup, "start_cpus", silent)


def _made_afresh(changes: Changes, owner: Any, empty: Any) -> None:
    def careless(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except CheckpointError:
            return empty

    changes.around(owner, "restore", careless)


@seeds("CPU-CHECKPOINT-008")
def a_damaged_cpu_checkpoint_is_made_afresh(changes: Changes) -> None:
    _made_afresh(changes, cpu_checkpoint, CPUState())


@seeds("CPU-CHECKPOINT-004", "MEM-CHECKPOINT-003", "#86676")
def checksums_are_those_of_another_hash(changes: Changes) -> None:
    changes.replace(files, "checksum", lambda dump: zlib.crc32(dump.encode()))


@seeds("CPU-CHECKPOINT-006", "PR #86689")
def a_cpu_checkpoint_needs_a_checksum(changes: Changes) -> None:
    changes.around(
        Format,
        "takes",
        lambda original, self, found: (
            original(self, found) and not (_of_cpus(found) and not found["checksum"])
        ),
    )


@seeds("CPU-CHECKPOINT-016")
def an_empty_default_set_is_damage(changes: Changes) -> None:
    def full(original: Any, content: bytes, policy: str, *rest: Any) -> Any:
        found = original(content, policy, *rest)
        if policy == "static" and not found.all_cpus():
            raise CheckpointError(CORRUPTED)
        return found

    changes.around(cpu_checkpoint, "restore", full)


@seeds("CPU-CHECKPOINT-019")
def files_of_before_pod_level_managers_cannot_be_read(changes: Changes) -> None:
    def latest(original: Any, self: Formats, content: bytes) -> Any:
        if self.keeps_pods and isinstance(self, CPUFormats):
            self = dataclasses.replace(self, attempts=self.attempts[:1])
        return original(self, content)

    changes.around(Formats, "read", latest)


@seeds("CPU-CHECKPOINT-022", "MEM-CHECKPOINT-013", kubernetes="1.37")
def the_part_for_earlier_releases_is_believed(changes: Changes) -> None:
    def earlier(original: Any, self: Formats, content: bytes) -> Any:
        known = tuple(one for one in self.attempts if isinstance(one, Format))
        return original(dataclasses.replace(self, attempts=known), content)

    changes.around(Formats, "read", earlier)


@seeds("CPU-CHECKPOINT-023", "MEM-CHECKPOINT-014", kubernetes="1.37")
def the_part_for_earlier_releases_stands_in_for_damaged_data(changes: Changes) -> None:
    def lenient(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        try:
            return original(self, content)
        except CheckpointError as error:
            raise UnreadableError(str(error), {}) from None

    changes.around(TwoPartFormat, "read", lenient)


@seeds("CPU-CHECKPOINT-021", "MEM-CHECKPOINT-012", kubernetes="1.37")
def data_has_the_checksum_of_the_other_part(changes: Changes) -> None:
    def written(original: Any, self: TwoPartFormat, content: Any) -> bytes:
        fields = json.loads(original(self, content))
        return json.dumps(
            {**fields, "dataChecksum": fields["checksum"]}, separators=(",", ":")
        ).encode()

    changes.around(TwoPartFormat, "write", written)


@seeds("CPU-CHECKPOINT-025", kubernetes="1.37")
def baselines_are_not_written(changes: Changes) -> None:
    changes.around(
        cpu_checkpoint,
        "dump",
        lambda original, state, *rest, **named: original(
            dataclasses.replace(state, baselines=None), *rest, **named
        ),
    )


# Memory


@seeds("MEM-CHECKPOINT-001")
def a_wrong_memory_checksum_is_accepted(changes: Changes) -> None:
    for one in (Format, TwoPartFormat):
        changes.around(
            one, "takes", lambda original, self, found: not _of_cpus(found) or original(self, found)
        )


@seeds("MEM-CHECKPOINT-008")
def a_damaged_memory_checkpoint_is_made_afresh(changes: Changes) -> None:
    _made_afresh(changes, memory_checkpoint, MemoryState())


@seeds("NODE-STATE-002")
def the_memory_checkpoint_is_not_written_again(changes: Changes) -> None:
    changes.replace(MemoryManager, "save", lambda self: None)


@seeds("#109996", "MEM-CHECKPOINT-011")
def another_machines_memory_is_accepted(changes: Changes) -> None:
    changes.replace(memory_policy, "same_memory", lambda real, expected: True)


@seeds("#113035", "MEM-RESTART-001")
def memory_within_a_group_must_lie_as_at_first(changes: Changes) -> None:
    changes.replace(
        memory_policy, "same_memory", lambda real, expected: dict(real) == dict(expected)
    )


@seeds("MEM-RESTART-001")
def a_restart_forgets_memory(changes: Changes) -> None:
    changes.replace(
        memory_policy.StaticMemoryPolicy, "restore", lambda self, state: MemoryState(self.empty)
    )


@seeds("MEM-STATIC-012")
def memory_is_taken_again_for_a_pod_that_has_it(changes: Changes) -> None:
    def greedy(original: Any, self: Any, state: MemoryState, pod: Any, *rest: Any) -> Any:
        left = {uid: held for uid, held in state.entries.items() if uid != pod.uid}
        running = {
            name: held
            for name, held in state.entries.get(pod.uid, {}).items()
            if name != rest[0].name
        }
        bare = MemoryState(
            state.nodes, {**left, pod.uid: running} if running else left, reuse=state.reuse
        )
        return original(self, bare, pod, *rest)

    changes.around(memory_policy.StaticMemoryPolicy, "allocate", greedy)


# Devices


@seeds("#102552", "#109595", "NODE-RESTART-001")
def a_restart_forgets_who_has_devices(changes: Changes) -> None:
    changes.replace(device_checkpoint, "load", lambda content: DeviceState())


@seeds("DEV-ALLOCATE-002")
def devices_held_before_a_restart_are_free(changes: Changes) -> None:
    changes.around(
        device_checkpoint,
        "load",
        lambda original, content: dataclasses.replace(original(content), taken={}),
    )


@seeds("#129078", "CPU-OPT-FULLPCPUS-010")
def parts_of_cores_are_not_kept_with_full_pcpus_only(changes: Changes) -> None:
    def strict(
        original: Any, self: Any, state: CPUState, pod: Any, container: Any, near: Any
    ) -> Any:
        had = state.of(pod.uid, container.name) or 0
        self.check_alignment(had.bit_count(), had.bit_count())
        return original(self, state, pod, container, near)

    changes.around(StaticCPUPolicy, "allocate", strict)


# Releases


@seeds("PR #133279", "NODE-PODLEVEL-001")
def pod_level_resources_are_ignored(changes: Changes) -> None:
    changes.replace(Release, "pod_level_under", lambda self, gates: "ignored")


@seeds("#135541", "DEV-HINT-003")
def device_hints_name_nodes_of_the_other_releases(changes: Changes) -> None:
    documented = DeviceHints.considered
    changes.replace(DeviceHints, "considered", AllNodesConsidered.considered)
    changes.replace(AllNodesConsidered, "considered", documented)
