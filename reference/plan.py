"""What a start decides for as long as the node runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.cpu import checkpoint as cpu_checkpoint
from numaproof.reference.kubernetes import checkpoint, pods
from numaproof.reference.memory import checkpoint as memory_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol import messages
    from numaproof.reference.cpu.policy import StaticPolicy
    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.kubernetes.releases import Release
    from numaproof.reference.machine.topology import CPUTopology


@dataclass(frozen=True, slots=True)
class Plan:
    """What a start decided, for as long as the node runs; `policy` None is the policy none."""

    release: Release
    topology: CPUTopology
    cpu_policy: str
    policy: StaticPolicy | None
    state_dir: Path
    pod_level: pods.PodLevel

    def read_pod(self, manifest: messages.Pod) -> pods.Pod:
        """The pod as this release reads its manifest.

        Raises:
            pods.PodError: the manifest is not a pod.
        """
        return pods.parse(manifest, self.pod_level)

    def write_cpus(self, cpus: CPUState) -> None:
        """Writes the CPU Manager's checkpoint."""
        checkpoint.write(
            self.state_dir / cpu_checkpoint.FILE_NAME, cpu_checkpoint.dump(cpus, self.cpu_policy)
        )

    def files(self) -> dict[str, str]:
        """The checkpoint files that exist, by name."""
        found = {
            name: checkpoint.read(self.state_dir / name)
            for name in (cpu_checkpoint.FILE_NAME, memory_checkpoint.FILE_NAME)
        }
        return {
            name: content.decode("utf-8", "replace")
            for name, content in found.items()
            if content is not None
        }
