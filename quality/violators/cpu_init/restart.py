"""Violators of the requirements of CPUs and restarts, each breaking one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.topology.hints import NO_AFFINITY
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-init")


def _restored(
    changes: Changes, change: Callable[[Any, CPUState, tuple[Pod, ...]], CPUState]
) -> None:
    """Lets the CPU Manager start with another state than the one that it restored."""

    def start_cpus(
        original: Any, setup: Any, release: Any, state_dir: Path, present: tuple[Pod, ...]
    ) -> Any:
        manager = original(setup, release, state_dir, present)
        if setup.cpu is not None:
            manager.state = change(setup, manager.state, present)
        return manager

    changes.around(startup, "start_cpus", start_cpus)


def _again(changes: Changes, drops: Callable[[PodContainer], bool]) -> None:
    """Has a pod that is admitted again give back first what some of its containers hold."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod.get("metadata", {}).get("uid")
        pod = self.pods.get(uid)
        if pod is not None and uid not in self.cpus.state.pods:
            for container in pod.containers:
                if drops(container):
                    self.cpus.state = self.cpus.state.release(uid, container.name)
        return original(self, args)

    changes.around(StartedNode, "admit", admit)


# CPU-RESTART-001: the same CPUs after a restart


def _forgotten(
    state: CPUState, present: tuple[Pod, ...], forgets: Callable[[Pod, PodContainer], bool]
) -> CPUState:
    for pod in present:
        for container in pod.containers:
            if pod.uid not in state.pods and forgets(pod, container):
                state = state.release(pod.uid, container.name)
    return state


@seeds("CPU-RESTART-001")
def a_restart_forgets_the_cpus_of_sidecars(changes: Changes) -> None:
    """Restores init containers as if they had come to an end."""
    _restored(
        changes,
        lambda setup, state, present: _forgotten(
            state, present, lambda pod, container: container.sidecar
        ),
    )


@seeds("CPU-RESTART-001")
def a_restart_restores_one_container_of_a_pod(changes: Changes) -> None:
    """Keeps entries by pod while it reads them, so that the last app container wins."""
    _restored(
        changes,
        lambda setup, state, present: _forgotten(
            state,
            present,
            lambda pod, container: not container.init and container is not pod.containers[-1],
        ),
    )


@seeds("CPU-RESTART-001")
def a_restart_packs_all_pods_again(changes: Changes) -> None:
    """Works the CPUs out from the pods on the node, which leaves out the pods that have gone."""

    def packed(setup: Any, state: CPUState, present: tuple[Pod, ...]) -> CPUState:
        if setup.topology_policy is not None or state.pods:
            return state
        places = [(pod, one) for pod in present for one in pod.containers]
        made = replace(state, reuse=ReusableCPUs())
        for pod, container in places:
            made = made.release(pod.uid, container.name)
        try:
            for pod, container in places:
                if state.of(pod.uid, container.name) is not None:
                    made = setup.cpu.allocate(made, pod, container, NO_AFFINITY)
        except (NotEnoughCPUsError, AdmissionError):
            return state
        return made

    _restored(changes, packed)


# CPU-RESTART-003, -006, -010: a pod that is admitted again


@seeds("CPU-RESTART-003")
def a_pod_admitted_again_is_placed_anew(changes: Changes) -> None:
    """Treats every admission as the first one, once what the pod had is given back."""
    _again(changes, lambda container: not container.init)


@seeds("CPU-RESTART-003")
def a_pod_admitted_again_returns_spare_cpus_to_the_pool(changes: Changes) -> None:
    """Takes its init containers for ended ones."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod.get("metadata", {}).get("uid")
        again = uid in self.pods
        answer = original(self, args)
        state = self.cpus.state
        for container in self.pods[uid].containers:
            if again and container.passes and uid not in state.pods:
                state = state.release(uid, container.name)
        if state is not self.cpus.state:
            self.cpus.state = state
            self.save()
        return answer

    changes.around(StartedNode, "admit", admit)


@seeds("CPU-RESTART-006")
def sidecars_of_a_pod_admitted_again_are_placed_anew(changes: Changes) -> None:
    """Has sidecars start again with their pod, and on other CPUs."""
    _again(changes, lambda container: container.sidecar)


@seeds("CPU-RESTART-006")
def pods_with_init_containers_are_placed_anew(changes: Changes) -> None:
    """Takes a pod with init containers for one that has not started yet."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod.get("metadata", {}).get("uid")
        pod = self.pods.get(uid)
        if pod is not None and any(one.passes for one in pod.containers):
            for container in pod.containers:
                if uid not in self.cpus.state.pods:
                    self.cpus.state = self.cpus.state.release(uid, container.name)
        return original(self, args)

    changes.around(StartedNode, "admit", admit)


def _served_again(
    changes: Changes, serve: Callable[[Any, Any, Pod, PodContainer, Any], None]
) -> None:
    """Lets `serve` allocate for an app container without CPUs whose pod is admitted again."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        self.cpus.again = args.pod.get("metadata", {}).get("uid") in self.pods
        return original(self, args)

    def allocate(original: Any, self: Any, pod: Pod, container: PodContainer, at: Any) -> None:
        gone = self.state.of(pod.uid, container.name) is None and not container.init
        if gone and getattr(self, "again", False):
            serve(original, self, pod, container, at)
        else:
            original(self, pod, container, at)

    changes.around(StartedNode, "admit", admit)
    changes.around(CPUManager, "allocate", allocate)


@seeds("CPU-RESTART-010")
def an_app_container_that_has_ended_reuses_nothing(changes: Changes) -> None:
    """Gives it free CPUs, as its init containers ended long ago."""

    def fresh(original: Any, manager: Any, pod: Pod, container: PodContainer, at: Any) -> None:
        manager.state = replace(manager.state, reuse=ReusableCPUs())
        original(manager, pod, container, at)

    _served_again(changes, fresh)


# CPU-RESTART-004 and -005: what the first pass takes back


def _gone(
    changes: Changes, keeps: Callable[[CPUState, str, str], bool], *, asked: bool = False
) -> None:
    """Keeps entries of pods that are gone at the first pass; maybe until a manager is `asked`."""

    def remove_stale_state(original: Any, self: Any, pods: Any, when: Any) -> None:
        if asked and when == "admission":
            original(self, pods, when)
            return
        state = self.state
        if not hasattr(self, "spared"):
            self.spared = {
                (uid, name) for uid, name, _ in state if uid not in pods and keeps(state, uid, name)
            }
        for uid, name, _ in tuple(state):
            pod = pods.get(uid)
            gone = pod is None or all(one.name != name for one in pod.containers)
            if gone and (uid, name) not in self.spared:
                self.release(uid, name)

    changes.around(CPUManager, "remove_stale_state", remove_stale_state)


@seeds("CPU-RESTART-004")
def only_the_first_container_of_a_pod_that_left_is_reclaimed(changes: Changes) -> None:
    """Forgets the pod with the first entry that it takes back."""
    _gone(changes, lambda state, uid, name: name != next(iter(state.exclusive[uid])))


@seeds("CPU-RESTART-005")
def the_first_pass_after_a_start_knows_no_pods(changes: Changes) -> None:
    """Runs before the pods of the node are known, and takes everything back."""

    def remove_stale_state(original: Any, self: Any, when: Any, providers: Any = None) -> None:
        if when == "reconcile" and not getattr(self, "passed", False):
            self.passed = True
            for provider in providers:
                provider.remove_stale_state({}, when)
        original(self, when, providers)

    changes.around(StartedNode, "remove_stale_state", remove_stale_state)


@seeds("CPU-RESTART-005")
def a_pass_wipes_pods_that_are_not_admitted_again_yet(changes: Changes) -> None:
    """Counts as pods of the node those that have been admitted since the start, and runs then."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        admitted: frozenset[str] = getattr(self, "admitted", frozenset())
        self.admitted = admitted | {args.pod.get("metadata", {}).get("uid")}
        present = {uid: pod for uid, pod in self.pods.items() if uid in self.admitted}
        self.cpus.remove_stale_state(present, "reconcile")
        return original(self, args)

    changes.around(StartedNode, "admit", admit)
