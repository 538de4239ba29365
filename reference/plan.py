"""What a start decides for as long as the node runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.kubelet.checkpoints import files as checkpoint
from numaproof.reference.kubelet.checkpoints import memory as memory_checkpoint
from numaproof.reference.pods.manifest import read_pod

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol import messages
    from numaproof.reference.cpu.policy import StaticPolicy
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.departures.releases import Release
    from numaproof.reference.devices.hints import DeviceHints
    from numaproof.reference.memory import policy as memory_policies
    from numaproof.reference.memory.state import MemoryState
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.pods.pod_level import PodLevel
    from numaproof.reference.topology.policy import TopologyPolicy


@dataclass(frozen=True, slots=True)
class Plan:
    """What a start decided, for as long as the node runs.

    `nodes` are the ids of the machine's NUMA nodes in its own order. `cpu`, `memory` and
    `topology_policy` are None for the policies none; `scope` is the Topology Manager's.
    """

    release: Release
    nodes: tuple[int, ...]
    topology: CPUTopology
    cpu_policy: str
    cpu: StaticPolicy | None
    memory_policy: str
    memory: memory_policies.StaticPolicy | None
    device_hints: DeviceHints
    topology_policy: TopologyPolicy | None
    scope: str
    state_dir: Path
    pod_level: PodLevel

    def read_pod(self, manifest: messages.Pod) -> Pod:
        """The pod as this release reads its manifest.

        Raises:
            PodError: the manifest is not a pod.
        """
        return read_pod(manifest, self.pod_level)

    def cpu_file(self, state: CPUState) -> bytes:
        """The content of ``cpu_manager_state``."""
        with_pods = self.release.pod_entries
        return cpu_checkpoint.dump(state, self.cpu_policy, with_pods=with_pods)

    def memory_file(self, state: MemoryState) -> bytes:
        """The content of ``memory_manager_state``."""
        with_pods = self.release.pod_entries
        return memory_checkpoint.dump(state, self.memory_policy, with_pods=with_pods)

    def write(self, name: str, content: bytes) -> None:
        """Writes a checkpoint file; `name` is relative to the state directory."""
        checkpoint.write(f"{self.state_dir}/{name}", content)

    def files(self) -> dict[str, str]:
        """The checkpoint files that exist, by name."""
        found = {
            name: checkpoint.read(f"{self.state_dir}/{name}")
            for name in (cpu_checkpoint.FILE_NAME, memory_checkpoint.FILE_NAME)
        }
        return {
            name: content.decode("utf-8", "replace")
            for name, content in found.items()
            if content is not None
        }
