"""Violators of the requirements of the Memory Manager's start, each breaking one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.config import configuration
from numaproof.reference.errors import AdmissionError, AllocationError
from numaproof.reference.memory import requests
from numaproof.reference.memory.manager import MemoryManager
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-start")

_REFUSED = "UnexpectedAdmissionError"


def _given(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Lets the kubelet read another configuration than the one it is given."""
    changes.around(
        configuration,
        "load",
        lambda original, given, *rest: original(change({**given}), *rest),
    )


def _pins_nothing(self: Any) -> bool:
    """Whether this is a Memory Manager with the policy None, which knows of no nodes."""
    return not self.state.nodes


# The policy None


@seeds("MEM-NONE-001")
def none_policy_rejects_fractions_of_bytes(changes: Changes) -> None:
    """A plausible author reads what a container requests before asking which policy it is."""

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        if _pins_nothing(self) and pod.qos == "Guaranteed":
            try:
                requests.part(pod, container)
            except AllocationError as error:
                message = f"Allocate failed due to {error}, which is unexpected"
                raise AdmissionError(_REFUSED, message) from None
        original(self, pod, container, affinity)

    changes.around(MemoryManager, "allocate", allocate)


@seeds("MEM-NONE-002")
def reserved_memory_switches_the_static_memory_policy_on(changes: Changes) -> None:
    """A plausible author takes reserved memory without a policy as a wish for Static."""

    def given(config: dict[str, Any]) -> dict[str, Any]:
        if config.get("memoryManagerPolicy") is None and config.get("reservedMemory"):
            config["memoryManagerPolicy"] = "Static"
        return config

    _given(changes, given)


# The configuration
