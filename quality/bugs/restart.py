"""Bugs in restarts: the content and validation of checkpoints, and release gates."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
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
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.reference.checkpoints.formats import Content

seeds = SubjectBugs("restart")


def _of_cpus(content: Content) -> bool:
    """Returns whether this is the content of a CPU Manager's file."""
    return "defaultCpuSet" in content


@seeds("#86676", "CPU-CHECKPOINT-005")
def a_wrong_cpu_checksum_is_accepted(changes: Changes) -> None:
    for one in (Format, TwoPartFormat):
        changes.around(
            one, "takes", lambda rule, self, content: _of_cpus(content) or rule(self, content)
        )


@seeds("CPU-RESTART-001").replace(StaticCPUPolicy, "restore")
def a_restart_forgets_exclusive_cpus(self: Any, state: Any) -> Any:
    return CPUState(self.topology.cpus)


@seeds("#124066", "CPU-ERROR-001")
def a_restart_accepts_any_set_of_cpus(changes: Changes) -> None:
    changes.replace(CPUState, "all_cpus", lambda self: -1)
    changes.around(
        StaticCPUPolicy, "restore", lambda rule, state: state if state.shared else rule()
    )


@seeds("#55736", "CPU-CHECKPOINT-007").around(cpu_checkpoint, "restore")
def another_policys_cpu_checkpoint_is_accepted(rule: Any, policy: str) -> CPUState:
    error: CheckpointError | None = None
    for name in (policy, "static", "none"):
        try:
            found: CPUState = rule(policy=name)
        except CheckpointError as problem:
            error = problem
        else:
            return found
    assert error is not None
    raise error


@seeds("CPU-CHECKPOINT-002").replace(CPUManager, "save", lambda self: None)
def the_cpu_checkpoint_is_not_written_again() -> None: ...


@seeds("CPU-CHECKPOINT-001", "CPU-CHECKPOINT-003").around(startup, "start_cpus")
def a_first_start_writes_no_cpu_checkpoint(rule: Any, state_dir: Path) -> Any:
    path = state_dir / cpu_checkpoint.FILE_NAME
    there = path.exists()
    manager = rule()
    if not there:
        path.unlink()
    return manager


def _recreate(changes: Changes, owner: Any, empty: Any) -> None:
    def careless(rule: Any, *args: Any) -> Any:
        try:
            return rule(*args)
        except CheckpointError:
            return empty

    changes.around(owner, "restore", careless)


@seeds("CPU-CHECKPOINT-008").of(_recreate, cpu_checkpoint, CPUState())
def a_damaged_cpu_checkpoint_is_made_afresh() -> None: ...


@seeds("CPU-CHECKPOINT-004", "MEM-CHECKPOINT-003", "#86676").replace(files, "checksum")
def checksums_are_those_of_another_hash(dump: Any) -> Any:
    return zlib.crc32(dump.encode())


@seeds("CPU-CHECKPOINT-006", "PR #86689").around(Format, "takes")
def a_cpu_checkpoint_needs_a_checksum(rule: Any, content: Any) -> Any:
    return rule() and not (_of_cpus(content) and not content["checksum"])


@seeds("CPU-CHECKPOINT-016").after(cpu_checkpoint, "restore")
def an_empty_default_set_is_damage(cpu_state: Any, policy: str) -> Any:
    if policy == "static" and not cpu_state.all_cpus():
        raise CheckpointError(CORRUPTED)
    return cpu_state


@seeds("CPU-CHECKPOINT-019").around(Formats, "read")
def files_of_before_pod_level_managers_cannot_be_read(rule: Any, self: Formats) -> Any:
    if self.keeps_pods and isinstance(self, CPUFormats):
        self = replace(self, attempts=self.attempts[:1])
    return rule(self=self)


@seeds("CPU-CHECKPOINT-022", "MEM-CHECKPOINT-013", kubernetes="1.37").around(Formats, "read")
def the_part_for_earlier_releases_is_believed(rule: Any, self: Formats) -> Any:
    known = tuple(one for one in self.attempts if isinstance(one, Format))
    return rule(self=replace(self, attempts=known))


@seeds("CPU-CHECKPOINT-023", "MEM-CHECKPOINT-014", kubernetes="1.37").around(TwoPartFormat, "read")
def the_part_for_earlier_releases_stands_in_for_damaged_data(rule: Any) -> Any:
    try:
        return rule()
    except CheckpointError as error:
        raise UnreadableError(str(error), {}) from None


@seeds("CPU-CHECKPOINT-021", "MEM-CHECKPOINT-012", kubernetes="1.37").around(TwoPartFormat, "write")
def data_has_the_checksum_of_the_other_part(rule: Any) -> bytes:
    fields = json.loads(rule())
    return json.dumps(
        {**fields, "dataChecksum": fields["checksum"]}, separators=(",", ":")
    ).encode()


@seeds("CPU-CHECKPOINT-025", kubernetes="1.37").around(cpu_checkpoint, "dump")
def baselines_are_not_written(rule: Any, state: Any) -> Any:
    return rule(state=replace(state, baselines=None))


# Memory


@seeds("MEM-CHECKPOINT-001")
def a_wrong_memory_checksum_is_accepted(changes: Changes) -> None:
    for one in (Format, TwoPartFormat):
        changes.around(
            one, "takes", lambda rule, self, content: not _of_cpus(content) or rule(self, content)
        )


@seeds("MEM-CHECKPOINT-008").of(_recreate, memory_checkpoint, MemoryState())
def a_damaged_memory_checkpoint_is_made_afresh() -> None: ...


@seeds("NODE-STATE-002").replace(MemoryManager, "save", lambda self: None)
def the_memory_checkpoint_is_not_written_again() -> None: ...


@seeds("#109996", "MEM-CHECKPOINT-011").replace(memory_policy, "same_memory")
def another_machines_memory_is_accepted(real: Any, expected: Any) -> Any:
    return True


@seeds("#113035", "MEM-RESTART-001").replace(memory_policy, "same_memory")
def memory_within_a_group_must_lie_as_at_first(real: Any, expected: Any) -> Any:
    return dict(real) == dict(expected)


@seeds("MEM-RESTART-001").replace(memory_policy.StaticMemoryPolicy, "restore")
def a_restart_forgets_memory(self: Any, state: Any) -> Any:
    return MemoryState(self.empty)


@seeds("MEM-STATIC-012").around(memory_policy.StaticMemoryPolicy, "allocate")
def memory_is_taken_again_for_a_pod_that_has_it(
    rule: Any, state: MemoryState, pod: Any, container: Any
) -> Any:
    left = {uid: held for uid, held in state.entries.items() if uid != pod.uid}
    running = {
        name: held
        for name, held in state.entries.get(pod.uid, {}).items()
        if name != container.name
    }
    entries = {**left, pod.uid: running} if running else left
    return rule(state=MemoryState(state.nodes, entries, reuse=state.reuse))


# Devices


@seeds("#102552", "#109595", "NODE-RESTART-001").replace(device_checkpoint, "load")
def a_restart_forgets_who_has_devices(content: Any) -> Any:
    return DeviceState()


@seeds("DEV-ALLOCATE-002").around(
    device_checkpoint, "load", lambda rule: replace(rule(), allocated_devices={})
)
def devices_held_before_a_restart_are_free() -> None: ...


@seeds("#129078", "CPU-OPT-FULLPCPUS-010").around(StaticCPUPolicy, "allocate")
def parts_of_cores_are_not_kept_with_full_pcpus_only(
    rule: Any, self: Any, state: CPUState, pod: Any, container: Any
) -> Any:
    had = state.of(pod.uid, container.name) or 0
    self.check_alignment(had.bit_count(), had.bit_count())
    return rule()


# Releases


@seeds("PR #133279", "NODE-PODLEVEL-001").replace(Release, "pod_level_under")
def pod_level_resources_are_ignored(self: Any, gates: Any) -> Any:
    return "ignored"


@seeds("#135541", "DEV-HINT-003")
def device_hints_name_nodes_of_the_other_releases(changes: Changes) -> None:
    documented = DeviceHints.candidate_nodes
    changes.replace(DeviceHints, "candidate_nodes", AllNodesConsidered.candidate_nodes)
    changes.replace(AllNodesConsidered, "candidate_nodes", documented)


# Containers that run on


@seeds("NODE-RESTART-005").around(StartedNode, "resume")
def running_pods_are_admitted_in_reverse(rule: Any, self: StartedNode) -> Any:
    self.pods = dict(reversed([*self.pods.items()]))
    return rule()


@seeds("NODE-RESTART-003").replace(StartedNode, "resume", lambda self, running: None)
def running_pods_are_not_admitted_again() -> None: ...
