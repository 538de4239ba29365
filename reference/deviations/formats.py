"""The formats of the managers' checkpoints in each release that changed them, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import cpu, memory
from numaproof.reference.checkpoints.cpu import CPUFormats
from numaproof.reference.checkpoints.formats import Formats

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU_1_30 = CPUFormats(
    attempts=(cpu.version_1(), cpu.version_2("state.CPUManagerCheckpoint")),
    write_format=cpu.version_2("state.CPUManagerCheckpoint"),
    migration_error="error migrating v1 checkpoint state to v2 checkpoint state",
)
"""Version 1 is tried first, because kubelets before 1.18 wrote it."""
CPU_1_36 = CPUFormats(
    attempts=(
        cpu.version_2("state.CPUManagerCheckpointV2", "state.CPUManagerCheckpointV2"),
        cpu.version_1(),
    ),
    write_format=cpu.version_2("state.CPUManagerCheckpointV2"),
    migration_error="failed to migrate checkpoint from v1 to v2",
)
"""Version 2 is tried first, as a separate type, whose checksum is also accepted."""
PODS_CPU_1_36: Mapping[str, Any] = {
    "attempts": (
        cpu.version_3("state.CPUManagerCheckpoint"),
        cpu.version_2("state.CPUManagerCheckpointV2"),
        cpu.version_1(),
    ),
    "write_format": cpu.version_3("state.CPUManagerCheckpoint"),
    "keeps_pods": True,
    "joins_pods": True,
}
"""Version 3 is tried first and written."""
CPU_1_37 = CPUFormats(
    attempts=(
        cpu.version_4(),
        cpu.version_3("state.CPUManagerCheckpointV3", "state.CPUManagerCheckpointV3"),
        cpu.version_2("state.CPUManagerCheckpointV2", "state.CPUManagerCheckpointV2"),
    ),
    write_format=cpu.version_4(),
    shared_pool="default CPU set",
)
"""Version 4 is written regardless of gates; version 1 is no longer supported."""
PODS_CPU_1_37: Mapping[str, Any] = {
    "attempts": (
        cpu.version_4(),
        cpu.version_3("state.CPUManagerCheckpointV3", "state.CPUManagerCheckpointV3"),
        cpu.version_2("state.CPUManagerCheckpointV2"),
    ),
    "keeps_pods": True,
}
"""Pods are kept. Version 2 is accepted only with the checksum of earlier releases."""

MEMORY_1_30 = Formats(
    attempts=(memory.version_1("state.MemoryManagerCheckpoint", takes_no_checksum=False),),
    write_format=memory.version_1("state.MemoryManagerCheckpoint", takes_no_checksum=False),
)
"""The only version, which requires its checksum."""
MEMORY_1_36 = Formats(
    attempts=(
        memory.version_1(
            "state.MemoryManagerCheckpointV1",
            "state.MemoryManagerCheckpointV1",
            takes_no_checksum=True,
        ),
    ),
    write_format=memory.version_1("state.MemoryManagerCheckpointV1", takes_no_checksum=True),
)
"""The version has a separate type, whose checksum is also accepted, but may be missing."""
PODS_MEMORY_1_36: Mapping[str, Any] = {
    "attempts": (
        memory.version_2("state.MemoryManagerCheckpoint"),
        memory.version_1("state.MemoryManagerCheckpointV1", takes_no_checksum=True),
    ),
    "write_format": memory.version_2("state.MemoryManagerCheckpoint"),
    "keeps_pods": True,
    "joins_pods": True,
}
"""Version 2 is tried first and written."""
MEMORY_1_37 = Formats(
    attempts=(
        memory.version_3(),
        memory.version_2("state.MemoryManagerCheckpointV2"),
        memory.version_1("state.MemoryManagerCheckpointV1", takes_no_checksum=True),
    ),
    write_format=memory.version_3(),
)
"""Version 3 is written regardless of gates."""
