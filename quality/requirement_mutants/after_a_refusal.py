"""Mutants in which a pod that is refused on readmission keeps some of its resources."""

from __future__ import annotations

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


def _keep(changes: Changes, manager: type, when: Callable[[node.StartedNode, str], bool]) -> None:
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


for _what, _manager, _requirement in (
    ("cpus", CPUManager, "CPU-REMOVE-004"),
    ("memory", MemoryManager, "NODE-REFUSED-001"),
    ("devices", DeviceManager, "DEV-REMOVE-003"),
):
    for _when, _condition in (
        ("after a restart", _after_a_restart),
        ("while running", _while_running),
    ):
        seeds.add(
            f"{_what}-of-a-pod-refused-again-{_when.replace(' ', '-')}-are-kept",
            f"Keeps the {_what} of a pod whose readmission {_when} is refused.",
            _requirement,
            "admission",
            _keep,
            _manager,
            _condition,
        )
