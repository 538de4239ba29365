"""Violators of the requirements of the whole node: the order of a start, and refused pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.protocol import messages
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("node-state")


# The order of a start


def _memory_damage(setup: Any, release: Any, state_dir: Path) -> str:
    """What is wrong with the memory checkpoint; nothing if it is whole, or not there."""
    content = files.read(state_dir / memory_checkpoint.FILE_NAME)
    if content is None:
        return ""
    try:
        state = memory_checkpoint.restore(content, setup.memory_policy, release.memory_files)
        if setup.memory:
            setup.memory.restore(state)
    except (files.CheckpointError, memory_policies.RestoreError) as error:
        return str(error)
    return ""


@seeds("NODE-RESTART-002")
def memory_manager_starts_before_the_cpu_manager(changes: Changes) -> None:
    """A plausible author starts the managers in another order."""

    def start_cpus(original: Any, setup: Any, release: Any, state_dir: Path, present: Any) -> Any:
        try:
            return original(setup, release, state_dir, present)
        except StartError:
            damage = _memory_damage(setup, release, state_dir)
            if damage:
                raise StartError("memory", f"start memory manager error: {damage}") from None
            raise

    changes.around(startup, "start_cpus", start_cpus)


# Refused pods


def _left_behind(
    changes: Changes, manager: type[Any], stays: Callable[[Pod, AdmissionError], bool]
) -> None:
    """Lets a manager take nothing back from the refused pods of which `stays` says so."""

    def admit(original: Any, self: StartedNode, args: messages.AdmitArgs) -> Any:
        pod = self.read_pod(args.pod)
        try:
            return original(self, args)
        except AdmissionError as error:
            if stays(pod, error):
                for provider in self.providers:
                    vars(provider).setdefault("refused", {})[pod.uid] = pod
            raise

    changes.around(StartedNode, "admit", admit)
    changes.around(
        manager,
        "remove_stale_state",
        lambda original, self, pods, when: original(
            self, {**vars(self).get("refused", {}), **pods}, when
        ),
    )


@seeds("NODE-REFUSED-001")
def pod_without_affinity_leaves_its_memory_allocated(changes: Changes) -> None:
    """A plausible author thinks that nothing was allocated yet where the hints refuse a pod."""
    _left_behind(changes, MemoryManager, lambda pod, error: error.reason == "TopologyAffinityError")
