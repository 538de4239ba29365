"""CPUs that an init container leaves to later containers of its pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.pods.pod import Pod


def reused_cpus(pod: Pod, exclusive: Mapping[str, CPUSet]) -> dict[str, CPUSet]:
    """Returns the exclusive CPUs of ordinary init containers that later containers also got.

    Args:
        pod: the pod.
        exclusive: the exclusive CPUs of each container by name.
    """
    found: dict[str, CPUSet] = {}
    later = CPUSet()
    for container in reversed(pod.containers):
        cpus = exclusive.get(container.name, CPUSet())
        if container.runs_to_completion and cpus & later:
            found[container.name] = cpus & later
        later = cpus | later
    return found
