"""Mutants in which a pod that is refused on readmission keeps some of its resources."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.reference import node
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory.manager import MemoryManager
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("topology")


def _keep(manager: type, when: Callable[[node.StartedNode, str], bool], changes: Changes) -> None:
    """Lets a manager keep the resources of pods whose readmission is refused.

    `when` gets the node and the pod's uid.
    """

    def refused(own: Any) -> dict[str, Any]:
        """The pods that a manager keeps, which a new start forgets."""
        kept: dict[str, Any] = vars(own).setdefault("refused", {})
        return kept

    def admit(rule: Any, self: node.StartedNode, args: Any) -> Any:
        pod = self.read_pod(args.pod)
        again = pod.uid in self.pods and when(self, pod.uid)
        try:
            return rule()
        except AdmissionError:
            if again:
                (own,) = (one for one in self.providers if isinstance(one, manager))
                refused(own)[pod.uid] = pod
            raise

    changes.around(node.StartedNode, "admit", admit)
    changes.around(
        manager,
        "remove_stale_state",
        lambda rule, self, pods: rule(pods={**refused(self), **pods}),
    )


def _after_a_restart(self: node.StartedNode, uid: str) -> bool:
    return uid in self.awaited_pods


def _while_running(self: node.StartedNode, uid: str) -> bool:
    return uid not in self.awaited_pods


def _add() -> None:
    for what, manager, requirement in (
        ("cpus", CPUManager, "CPU-REMOVE-004"),
        ("memory", MemoryManager, "NODE-REFUSED-001"),
        ("devices", DeviceManager, "DEV-REMOVE-003"),
    ):
        for when, condition in (
            ("after a restart", _after_a_restart),
            ("while running", _while_running),
        ):
            seeds.add(
                f"{what}-of-a-pod-refused-again-{when.replace(' ', '-')}-are-kept",
                requirement,
                "admission",
                partial(_keep, manager, condition),
                f"Keeps the {what} of a pod whose readmission {when} is refused.",
            )


_add()
