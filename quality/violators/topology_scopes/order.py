"""Violators of the order of the managers, and of what they do after a restart."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu import hints as cpu_hints
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.devices.state import all_held
from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("topology-scopes")


# The order of a start


# The order of an admission


def _losing(
    changes: Changes,
    owner: type,
    lost: Callable[[Any, Pod, list[str]], tuple[str, ...]],
) -> None:
    """Lets a manager keep what it has for containers of a pod that is refused.

    `lost` names them: it is given the manager, the pod, and the containers whose turn had come.
    """

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        vars(self)["turn"] = container.name
        original(self, pod, container, affinity)

    def admit(original: Any, self: StartedNode, args: Any) -> Any:
        pod = self.read_pod(args.pod)
        manager: Any = next(one for one in self.providers if isinstance(one, owner))
        devices: Any = self.device_manager
        known = pod.uid in self.pods
        devices.turn = None
        try:
            answer = original(self, args)
        except AdmissionError:
            names = [one.name for one in pod.containers]
            if devices.turn is not None and not known and pod.budget is None:
                served = names[: names.index(devices.turn) + 1]
                kept = lost(manager, pod, served)
                left = tuple(one for one in pod.containers if one.name in kept)
                if left:
                    rest = dataclasses.replace(pod, containers=left)
                    vars(manager).setdefault("lost", {})[pod.uid] = rest
            raise
        vars(manager).get("lost", {}).pop(pod.uid, None)
        return answer

    def remove_stale_state(original: Any, self: Any, pods: Any, when: Any) -> None:
        original(self, {**vars(self).get("lost", {}), **pods}, when)

    changes.around(DeviceManager, "allocate", allocate)
    changes.around(StartedNode, "admit", admit)
    changes.around(owner, "remove_stale_state", remove_stale_state)


@seeds("TOPO-ORDER-003")
def memory_of_containers_before_the_refused_one_is_lost(changes: Changes) -> None:
    """An author has only CPUs given back when a later container is refused."""
    _losing(changes, MemoryManager, lambda manager, pod, served: tuple(served[:-1]))


@seeds("TOPO-ORDER-004")
def too_little_memory_is_an_empty_list_of_hints(changes: Changes) -> None:
    """An author reports what cannot be met as the other managers do."""

    def calculated(original: Any, state: Any, uid: Any, amounts: Any) -> Any:
        return original(state, uid, amounts) or dict.fromkeys(amounts, ())

    changes.around(memory_hints, "calculated", calculated)


@seeds("TOPO-ORDER-005")
def the_number_of_cpus_is_checked_before_whole_cores(changes: Changes) -> None:
    """An author first looks whether there are CPUs at all."""

    def check(original: Any, self: StaticCPUPolicy, count: int, free: int) -> None:
        if self.options.full_cores and count > free:
            raise NotEnoughCPUsError(count, free)
        original(self, count, free)

    changes.around(StaticCPUPolicy, "check_alignment", check)


# After a restart


def _starting(changes: Changes, started: Callable[[Any, Any], None]) -> None:
    """Lets `started` see the node after each start, and what it was started with."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        node = original(args, *rest)
        started(node, args)
        return node

    changes.around(startup, "start", start)


@seeds("TOPO-RESTART-001")
def memory_has_no_say_in_the_affinity_after_a_restart(changes: Changes) -> None:
    """An author has the Memory Manager say nothing of what it has handed out already."""
    changes.replace(memory_hints, "regenerated", lambda blocks, amounts: {})


@seeds("TOPO-RESTART-001")
def app_containers_are_given_cpus_anew_after_a_restart(changes: Changes) -> None:
    """An author finds the pod in the checkpoint, and serves it near what it had."""

    def started(node: Any, _args: Any) -> None:
        node.cpus.again = {
            (pod.uid, one.name)
            for pod in node.pods.values()
            for one in pod.containers
            if not one.init and pod.budget is None
        }

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        again = vars(self).get("again", set())
        if (pod.uid, container.name) in again and self.state.of(pod.uid, container.name):
            self.end(pod.uid, container.name)
        again.discard((pod.uid, container.name))
        original(self, pod, container, affinity)

    _starting(changes, started)
    changes.around(CPUManager, "allocate", allocate)


@seeds("TOPO-RESTART-002")
def the_pod_scope_judges_a_running_pod_by_free_cpus_too(changes: Changes) -> None:
    """An author asks whether the pod could be placed, not whether it is placed well."""

    def for_pod(original: Any, policy: Any, state: Any, pod: Any) -> Any:
        found = original(policy, state, pod)
        held = 0
        for container in pod.containers:
            held |= state.of(pod.uid, container.name) or 0
        count = pod.exclusive_cpus_at_once()
        if pod.budget is not None or not held or held.bit_count() != count:
            return found
        return {"cpu": cpu_hints.generate(policy, policy.available(state) | held, 0, count)}

    changes.around(cpu_hints, "for_pod", for_pod)


def _anew(changes: Changes, owner: type, which: Callable[[Any], bool]) -> None:
    """Lets a manager serve such containers again that hold something."""

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        held = pod.budget is None and self.state.of(pod.uid, container.name)
        if held and which(container) and not any(one.passes for one in pod.containers):
            self.end(pod.uid, container.name)
        original(self, pod, container, affinity)

    changes.around(owner, "allocate", allocate)


@seeds("TOPO-RESTART-003")
def sidecars_that_are_admitted_again_get_cpus_anew(changes: Changes) -> None:
    """An author takes a sidecar for an init container, which starts again with its pod."""
    _anew(changes, CPUManager, lambda container: container.sidecar)


@seeds("TOPO-RESTART-003")
def app_containers_that_are_admitted_again_get_memory_anew(changes: Changes) -> None:
    """An author keeps CPUs, and has memory follow the affinity of the day."""
    _anew(changes, MemoryManager, lambda container: not container.init)


@seeds("TOPO-RESTART-003")
def containers_that_are_admitted_again_get_devices_anew(changes: Changes) -> None:
    """An author has no checkpoint for devices in mind."""

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        mine = self.state.held.get(pod.uid, {})
        if container.name in mine and not any(one.passes for one in pod.containers):
            left = {name: held for name, held in mine.items() if name != container.name}
            held = {**self.state.held, pod.uid: left}
            self.state = dataclasses.replace(self.state, held=held, taken=all_held(held))
        original(self, pod, container, affinity)

    changes.around(DeviceManager, "allocate", allocate)
