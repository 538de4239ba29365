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
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.memory import hints as memory_hints
from numaproof.reference.memory import manager as memory_manager
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from numaproof.reference.topology import scope
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.policies import refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("topology-scopes")


# The order of a start


@seeds("TOPO-ORDER-001")
def cpu_options_are_read_before_topology_options(changes: Changes) -> None:
    """An author makes the managers first that the Topology Manager is to ask."""
    late: list[StartError] = []

    def make_topology(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except StartError as error:
            if error.stage != "topology":
                raise
            late.append(error)
            return None

    def make_cpu(original: Any, *args: Any) -> Any:
        made = original(*args)
        if late:
            raise late.pop()
        return made

    changes.around(startup, "make_topology_policy", make_topology)
    changes.around(startup, "make_cpu_policy", make_cpu)


@seeds("TOPO-ORDER-001")
def the_memory_manager_is_made_before_the_cpu_manager(changes: Changes) -> None:
    """An author makes the Memory Manager first, which has less to read."""
    late: list[StartError] = []

    def make_cpu(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except StartError as error:
            late.append(error)
            return None

    def start_cpus(original: Any, *args: Any) -> Any:
        if late:
            raise late.pop()
        return original(*args)

    changes.around(startup, "make_cpu_policy", make_cpu)
    changes.around(startup, "start_cpus", start_cpus)


@seeds("TOPO-ORDER-001")
def the_cpu_checkpoint_is_read_before_the_memory_manager_is_made(changes: Changes) -> None:
    """An author lets the constructor of the CPU Manager read its file."""
    late: list[StartError] = []

    def make_memory(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        except StartError as error:
            late.append(error)
            return None

    def start_cpus(original: Any, setup: Any, release: Any, state_dir: Path, pods: Any) -> Any:
        if not late:
            return original(setup, release, state_dir, pods)
        file = state_dir / cpu_checkpoint.FILE_NAME
        if file.exists():
            content = file.read_bytes()
            try:
                original(setup, release, state_dir, pods)
            finally:
                file.write_bytes(content)
        raise late.pop()

    changes.around(startup, "make_memory_policy", make_memory)
    changes.around(startup, "start_cpus", start_cpus)


# The order of an admission


@seeds("TOPO-ORDER-002")
def cpus_are_allocated_before_devices(changes: Changes) -> None:
    """An author registers the CPU Manager first."""
    changes.property(StartedNode, "providers", lambda found: (found[1], found[0], found[2]))


@seeds("TOPO-ORDER-002")
def memory_is_allocated_before_cpus(changes: Changes) -> None:
    """An author has the scarcer memory handed out first."""
    changes.property(StartedNode, "providers", lambda found: (found[0], found[2], found[1]))


@seeds("TOPO-ORDER-002")
def all_containers_get_their_devices_before_any_gets_cpus(changes: Changes) -> None:
    """An author loops over managers outside, and over containers inside."""

    def admit(original: Any, policy: Any, how: str, providers: Any, pod: Any, keep: Any) -> None:
        if policy is not None:
            original(policy, how, providers, pod, keep)
            return
        for provider in providers:
            for container in pod.containers:
                provider.allocate(pod, container, scope.NO_AFFINITY)

    changes.around(scope, "admit", admit)


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

    def reclaim(original: Any, self: Any, pods: Any) -> None:
        original(self, {**vars(self).get("lost", {}), **pods})

    changes.around(DeviceManager, "allocate", allocate)
    changes.around(StartedNode, "admit", admit)
    changes.around(owner, "reclaim", reclaim)


@seeds("TOPO-ORDER-003")
def cpus_of_containers_before_the_refused_one_are_lost(changes: Changes) -> None:
    """An author rolls back the container that failed, and forgets those before it."""
    _losing(changes, CPUManager, lambda manager, pod, served: tuple(served[:-1]))


@seeds("TOPO-ORDER-003")
def cpus_of_the_container_without_memory_are_lost(changes: Changes) -> None:
    """An author rolls back earlier containers, and not the one whose memory was refused."""
    _losing(changes, CPUManager, lambda manager, pod, served: tuple(served[-1:]))


@seeds("TOPO-ORDER-003")
def memory_of_containers_before_the_refused_one_is_lost(changes: Changes) -> None:
    """An author has only CPUs given back when a later container is refused."""
    _losing(changes, MemoryManager, lambda manager, pod, served: tuple(served[:-1]))


@seeds("TOPO-ORDER-003")
def devices_of_a_refused_pod_are_lost(changes: Changes) -> None:
    """An author gives devices back when a pod ends, and a refused one never ran."""
    _losing(changes, DeviceManager, lambda manager, pod, served: tuple(served))


@seeds("TOPO-ORDER-004")
def too_little_memory_is_an_empty_list_of_hints(changes: Changes) -> None:
    """An author reports what cannot be met as the other managers do."""

    def calculated(original: Any, state: Any, reuse: Any, uid: Any, amounts: Any) -> Any:
        return original(state, reuse, uid, amounts) or dict.fromkeys(amounts, ())

    changes.around(memory_hints, "calculated", calculated)


@seeds("TOPO-ORDER-004")
def too_little_memory_is_an_affinity_error(changes: Changes) -> None:
    """An author finds that memory on no nodes is a matter of topology."""

    def unexpected(original: Any, error: Exception) -> Any:
        found = original(error)
        return refusal() if "default NUMA affinity" in str(error) else found

    changes.around(memory_manager, "unexpected", unexpected)


@seeds("TOPO-ORDER-005")
def the_number_of_cpus_is_checked_before_whole_cores(changes: Changes) -> None:
    """An author first looks whether there are CPUs at all."""

    def check(original: Any, self: StaticCPUPolicy, count: int, free: int) -> None:
        if self.options.full_cores and count > free:
            raise NotEnoughCPUsError(count, free)
        original(self, count, free)

    changes.around(StaticCPUPolicy, "check_alignment", check)


@seeds("TOPO-ORDER-005")
def whole_cores_are_checked_before_the_affinity(changes: Changes) -> None:
    """An author checks the request itself before anything on the node."""

    def admit(original: Any, self: StartedNode, args: Any) -> Any:
        pod = self.read_pod(args.pod)
        static = self.setup.cpu if self.setup.topology_policy is not None else None
        if static is not None and pod.uid not in self.pods and pod.budget is None:
            for container in pod.containers:
                count = pod.exclusive_cpus(container)
                static.check_alignment(count, count)
        return original(self, args)

    changes.around(StartedNode, "admit", admit)


# After a restart


def _starting(changes: Changes, started: Callable[[Any, Any], None]) -> None:
    """Lets `started` see the node after each start, and what it was started with."""

    def start(original: Any, args: Any, *rest: Any) -> Any:
        node = original(args, *rest)
        started(node, args)
        return node

    changes.around(startup, "start", start)


@seeds("TOPO-RESTART-001")
def the_affinity_after_a_restart_comes_from_free_cpus_too(changes: Changes) -> None:
    """An author counts the CPUs of the pod as free, and asks where it could be best."""

    def for_container(
        original: Any, policy: Any, state: Any, reuse: Any, pod: Any, container: Any
    ) -> Any:
        found = original(policy, state, reuse, pod, container)
        held = state.of(pod.uid, container.name)
        if held is None or found in ({}, cpu_hints.UNSATISFIABLE):
            return found
        count = pod.exclusive_cpus(container)
        return {"cpu": cpu_hints.generate(policy, policy.available(state) | held, 0, count)}

    changes.around(cpu_hints, "for_container", for_container)


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
def pods_that_hold_cpus_are_never_rejected(changes: Changes) -> None:
    """An author does not ask the policy about pods that run."""

    def affinity_of(original: Any, policy: Any, providers: Any, pod: Any, container: Any) -> Any:
        try:
            return original(policy, providers, pod, container)
        except AdmissionError:
            cpus = next(one for one in providers if isinstance(one, CPUManager))
            if pod.uid not in cpus.state.exclusive:
                raise
            return policy.merge([provider.hints(pod, container) for provider in providers])[0]

    changes.around(scope, "affinity_of", affinity_of)


@seeds("TOPO-RESTART-002")
def the_pod_scope_judges_a_running_pod_by_free_cpus_too(changes: Changes) -> None:
    """An author asks whether the pod could be placed, not whether it is placed well."""

    def for_pod(original: Any, policy: Any, state: Any, reuse: Any, pod: Any) -> Any:
        found = original(policy, state, reuse, pod)
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
