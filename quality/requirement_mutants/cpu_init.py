"""Mutants of the CPUs of init containers and sidecars, and of restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import CPUState, ReusableCPUs
from numaproof.reference.cpu.topology import union
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.node import StartedNode
from numaproof.reference.topology.hints import NO_AFFINITY
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-init")


# Init containers


@shape(StaticCPUPolicy, "allocate")
def _without_reuse(
    applies: Change, rule: Any, self: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Allocates without reusable CPUs if `applies` is true.

    `applies` is called with the policy, the state, the reusable CPUs, the pod and the container.
    """
    reusable = state.reuse.of(pod.uid)
    if state.of(pod.uid, container.name) is not None or not reusable:
        return rule()
    if not applies(self, state, reusable, pod, container):
        return rule()
    made = rule(state=replace(state, reuse=ReusableCPUs(pod.uid, 0)))
    return replace(made, reuse=ReusableCPUs(pod.uid, reusable | made.reuse.of(pod.uid)))


@shape(StaticCPUPolicy, "allocate", Changes.after)
def _change_reusable(
    choose_reusable: Change, new_state: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Lets `choose_reusable` compute the CPUs that are reusable after an allocation.

    It is called with the state before and after, the pod, the container, and the reusable CPUs
    before and after.
    """
    if new_state.of(pod.uid, container.name) is None:
        return new_state
    earlier, by_rule = state.reuse.of(pod.uid), new_state.reuse.of(pod.uid)
    reusable = choose_reusable(state, new_state, pod, container, earlier, by_rule)
    return replace(new_state, reuse=ReusableCPUs(pod.uid, reusable))


# CPU-INIT-001 to -003: reuse


@seeds("CPU-INIT-001").by(_without_reuse)
def only_the_first_app_container_reuses_cpus(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Lets only the first app container reuse CPUs."""
    return not container.init and container is not next(
        one for one in pod.containers if not one.init
    )


@seeds("CPU-INIT-001").by(_without_reuse)
def app_containers_larger_than_what_is_reusable_reuse_nothing(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Reuses CPUs only if they suffice for the whole container."""
    return not container.init and pod.exclusive_cpus(container) > reusable.bit_count()


@seeds("CPU-INIT-001").by(_change_reusable)
def the_last_init_container_alone_leaves_cpus(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Keeps only the last init container's CPUs for reuse."""
    return state.of(pod.uid, container.name) if container.runs_to_completion else after


@seeds("CPU-INIT-002").by(_without_reuse)
def init_containers_reuse_cpus_in_need_alone(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Gives init containers free CPUs if there are enough, and reuses CPUs only if not."""
    return (
        container.runs_to_completion
        and pod.exclusive_cpus(container) <= policy.available(state).bit_count()
    )


@seeds("CPU-INIT-003").by(_without_reuse)
def init_containers_after_a_sidecar_reuse_nothing(
    _policy: Any, _state: Any, _reusable: int, pod: Pod, container: PodContainer
) -> bool:
    """Doesn't reuse CPUs in init containers after a sidecar."""
    earlier = pod.containers[: pod.containers.index(container)]
    return container.runs_to_completion and any(one.sidecar for one in earlier)


# CPU-INIT-004: sidecars


@seeds("CPU-INIT-004").by(_change_reusable)
def what_a_sidecar_takes_over_can_be_taken_once_more(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Leaves the CPUs that a sidecar reuses in the set of reusable CPUs."""
    return reusable if container.sidecar else after


@seeds("CPU-INIT-004").by(_change_reusable)
def only_the_first_sidecar_keeps_its_cpus(
    _before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> int:
    """Treats all sidecars but the first like ordinary init containers."""
    first = next((one for one in pod.containers if one.sidecar), container)
    later = container.sidecar and container is not first
    return reusable | (state.of(pod.uid, container.name) or 0) if later else after


# CPU-INIT-005 and -006: the end of an init container


@seeds("CPU-INIT-006").around(StartedNode, "remove")
def what_nobody_took_over_returns_with_the_pod(rule: Any, self: Any, args: Any) -> Any:
    """Releases an init container's CPUs only with the pod if no container reuses them."""
    before = self.cpus.state
    done = rule()
    static, state = (self.setup.cpu, self.cpus.state)
    if static is None or args.uid in before.pods:
        return done
    if args.container is None:
        free = static.allocatable if static.options.strict else static.topology.cpus
        held = union((cpus for _, _, cpus in state)) | union(state.pods.values())
        self.cpus.state = replace(state, shared=free & ~held)
    elif self.pods[args.uid].container(args.container).runs_to_completion:
        own = before.of(args.uid, args.container) or 0
        others = union(state.exclusive.get(args.uid, {}).values())
        if not own & others:
            self.cpus.state = replace(state, shared=state.shared & ~(own & ~others))
    self.save()
    return done


# CPU-INIT-007: within one pod, and once


@seeds("CPU-INIT-007").around(ReusableCPUs, "of", lambda rule, self: self.cpus)
def the_next_pod_reuses_the_cpus_of_init_containers() -> None:
    """Lets other pods reuse the CPUs of init containers."""


@seeds("CPU-INIT-007").by(_change_reusable)
def every_app_container_reuses_the_same_cpus(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Lets every app container reuse the same CPUs."""
    return after if container.init else reusable


@seeds("CPU-INIT-007").by(_change_reusable)
def a_container_that_comes_back_reuses_what_another_has_taken(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Lets a readmitted app container reuse CPUs that another app container has."""
    return (
        reusable if not container.init and before.of(pod.uid, container.name) is not None else after
    )


# CPU-INIT-009: ended init containers


@seeds("CPU-INIT-009").around(StaticCPUPolicy, "has_ended")
def an_init_container_has_ended_if_all_others_are_pinned(rule: Any, state: Any, pod: Pod) -> Any:
    """Treats an init container as ended only if every app container holds exclusive CPUs."""
    apps = (one for one in pod.containers if not one.init)
    return rule() and all(state.of(pod.uid, one.name) is not None for one in apps)


@seeds("CPU-INIT-009").around(StaticCPUPolicy, "has_ended")
def only_the_first_init_container_is_known_to_be_gone(rule: Any, pod: Any, container: Any) -> Any:
    """Recognizes only the first init container as ended, and allocates for the others again."""
    return rule() and container is pod.containers[0]


# CPU-RESTART-007: a changed reservation


@seeds("CPU-RESTART-007").around(startup, "start_cpus")
def another_reservation_is_not_kept_free(rule: Any, setup: Any, state_dir: Path) -> Any:
    """Keeps allocating by the old reservation after a restart with a new one."""
    if setup.cpu is None:
        return rule()
    note = Path(state_dir) / "reserved_cpus"
    earlier = int(note.read_text()) if note.exists() else setup.cpu.reserved
    manager = rule()
    if earlier != setup.cpu.reserved:
        made = replace(setup, cpu=replace(setup.cpu, reserved=earlier))
        manager = rule(setup=made)
    note.write_text(str(earlier))
    return manager


# CPU-RESTART-008: a refused start


@shape(startup, "start_cpus")
def _spoil_checkpoint(spoil: Callable[[Path, str], None], rule: Any, state_dir: Path) -> Any:
    """Lets `spoil` change the checkpoint if the CPU Manager refuses to start."""
    try:
        return rule()
    except StartError as error:
        spoil(Path(state_dir) / cpu_checkpoint.FILE_NAME, str(error))
        raise


@seeds("CPU-RESTART-008").by(_spoil_checkpoint)
def a_checkpoint_that_does_not_fit_is_moved_aside(file: Path, why: str) -> None:
    """Renames a checkpoint of another machine or reservation."""
    if "could not restore state" not in why and file.exists():
        file.rename(f"{file}.refused")


@seeds("CPU-RESTART-008").around(startup, "start")
def a_start_with_a_bad_configuration_removes_the_checkpoint(rule: Any, args: Any) -> Any:
    """Removes the checkpoint if the configuration is invalid."""
    try:
        return rule()
    except StartError as error:
        if error.stage in ("config", "topology"):
            (Path(args.state_dir) / cpu_checkpoint.FILE_NAME).unlink(missing_ok=True)
        raise


@seeds("CPU-RESTART-008").after(startup, "start_cpus")
def cpus_are_reclaimed_before_the_memory_manager_starts(
    manager: Any, present: tuple[Pod, ...]
) -> Any:
    """Removes stale state and saves the checkpoint before the Memory Manager starts."""
    manager.remove_stale_state({pod.uid: pod for pod in present}, "reconcile")
    manager.save()
    return manager


# CPU-RESTART-009: pod-level CPUs


@seeds("CPU-RESTART-009").around(StaticCPUPolicy, "keeps")
def pods_with_init_containers_take_pod_level_cpus_anew(rule: Any, pod: Any) -> Any:
    """Allocates pod-level CPUs again if the pod has init containers."""
    return rule() and not any(one.init for one in pod.containers)


@seeds("CPU-RESTART-009").around(StaticCPUPolicy, "allocate_pod")
def a_pod_admitted_again_has_pod_level_cpus_twice(rule: Any, state: Any, pod: Pod) -> Any:
    """Allocates pod-level CPUs again and adds them to the pod's."""
    own = state.pods.get(pod.uid, 0)
    if not own:
        return rule()
    rest = {uid: cpus for uid, cpus in state.pods.items() if uid != pod.uid}
    try:
        more = rule(state=replace(state, pods=rest))
    except (NotEnoughCPUsError, AdmissionError):
        return state
    return more.assign_pod(pod.uid, own | more.pods.get(pod.uid, 0))


# Restarts


@shape(startup, "start_cpus", Changes.after)
def _change_restored_state(
    change: Change, manager: Any, setup: Any, present: tuple[Pod, ...]
) -> Any:
    """Lets `change` replace the restored state of the CPU Manager."""
    if setup.cpu is not None:
        manager.state = change(setup, manager.state, present)
    return manager


@shape(StartedNode, "admit")
def _again(drops: Callable[[PodContainer], bool], rule: Any, self: Any, args: Any) -> Any:
    """Releases the CPUs of containers selected by `drops` when their pod is readmitted."""
    uid = args.pod.get("metadata", {}).get("uid")
    pod = self.pods.get(uid)
    if pod is not None and uid not in self.cpus.state.pods:
        for container in pod.containers:
            if drops(container):
                self.cpus.state = self.cpus.state.release(uid, container.name)
    return rule()


# CPU-RESTART-001: the same CPUs after a restart


def _forget_cpus(
    state: CPUState, present: tuple[Pod, ...], forgets: Callable[[Pod, PodContainer], bool]
) -> CPUState:
    for pod in present:
        for container in pod.containers:
            if pod.uid not in state.pods and forgets(pod, container):
                state = state.release(pod.uid, container.name)
    return state


@seeds("CPU-RESTART-001").by(_change_restored_state)
def a_restart_forgets_the_cpus_of_sidecars(setup: Any, state: CPUState, present: Any) -> Any:
    """Doesn't restore the CPUs of sidecars."""
    return _forget_cpus(state, present, lambda pod, container: container.sidecar)


@seeds("CPU-RESTART-001").by(_change_restored_state)
def a_restart_restores_one_container_of_a_pod(setup: Any, state: CPUState, present: Any) -> Any:
    """Restores only the last app container of each pod."""
    return _forget_cpus(
        state,
        present,
        lambda pod, container: not container.init and container is not pod.containers[-1],
    )


@seeds("CPU-RESTART-001").by(_change_restored_state)
def a_restart_packs_all_pods_again(setup: Any, state: CPUState, present: Any) -> CPUState:
    """Allocates CPUs anew for all pods on the node."""
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


# CPU-RESTART-003, -006 and -010: readmitted pods


@seeds("CPU-RESTART-003").of(_again, lambda container: not container.init)
def a_pod_admitted_again_is_placed_anew() -> None:
    """Releases and reallocates the CPUs of app containers on readmission."""


@seeds("CPU-RESTART-003").around(StartedNode, "admit")
def a_pod_admitted_again_returns_spare_cpus_to_the_pool(rule: Any, self: Any, args: Any) -> Any:
    """Releases the CPUs of init containers on readmission."""
    uid = args.pod.get("metadata", {}).get("uid")
    again = uid in self.pods
    answer = rule()
    state = self.cpus.state
    for container in self.pods[uid].containers:
        if again and container.runs_to_completion and uid not in state.pods:
            state = state.release(uid, container.name)
    if state is not self.cpus.state:
        self.cpus.state = state
        self.save()
    return answer


@seeds("CPU-RESTART-006").of(_again, lambda container: container.sidecar)
def sidecars_of_a_pod_admitted_again_are_placed_anew() -> None:
    """Reallocates the CPUs of sidecars on readmission."""


@seeds("CPU-RESTART-006").around(StartedNode, "admit")
def pods_with_init_containers_are_placed_anew(rule: Any, self: Any, args: Any) -> Any:
    """Reallocates the CPUs of readmitted pods with init containers."""
    uid = args.pod.get("metadata", {}).get("uid")
    pod = self.pods.get(uid)
    if pod is not None and any(one.runs_to_completion for one in pod.containers):
        for container in pod.containers:
            if uid not in self.cpus.state.pods:
                self.cpus.state = self.cpus.state.release(uid, container.name)
    return rule()


def _served_again(
    changes: Changes, serve: Callable[[Any, Any, Pod, PodContainer, Any], None]
) -> None:
    """Lets `serve` allocate for an app container that holds no CPUs when its pod is readmitted."""

    def admit(rule: Any, self: Any, args: Any) -> Any:
        self.cpus.again = args.pod.get("metadata", {}).get("uid") in self.pods
        return rule()

    def allocate(rule: Any, self: Any, pod: Pod, container: PodContainer, affinity: Any) -> None:
        gone = self.state.of(pod.uid, container.name) is None and not container.init
        if gone and getattr(self, "again", False):
            serve(rule, self, pod, container, affinity)
        else:
            rule()

    changes.around(StartedNode, "admit", admit)
    changes.around(CPUManager, "allocate", allocate)


@seeds("CPU-RESTART-010").by(_served_again)
def an_app_container_that_has_ended_reuses_nothing(
    rule: Any, manager: Any, pod: Pod, container: PodContainer, at: Any
) -> None:
    """Doesn't reuse CPUs for an app container that has ended."""
    manager.state = replace(manager.state, reuse=ReusableCPUs())
    rule(manager, pod, container, at)


# CPU-RESTART-004 and -005: the first reconcile pass


@seeds("CPU-RESTART-004").replace(CPUManager, "remove_stale_state")
def only_the_first_container_of_a_pod_that_left_is_reclaimed(
    self: Any, pods: Any, when: Any
) -> None:
    """Releases only the first container of each removed pod."""
    state = self.state
    if not hasattr(self, "spared_places"):
        self.spared_places = {
            (uid, name)
            for uid, name, _ in state
            if uid not in pods and name != next(iter(state.exclusive[uid]))
        }
    for uid, name, _ in tuple(state):
        pod = pods.get(uid)
        gone = pod is None or all(one.name != name for one in pod.containers)
        if gone and (uid, name) not in self.spared_places:
            self.release(uid, name)


@seeds("CPU-RESTART-005").around(StartedNode, "remove_stale_state")
def the_first_pass_after_a_start_knows_no_pods(
    rule: Any, self: Any, when: Any, providers: Any
) -> None:
    """Runs the first reconcile pass before the node's pods are known, which releases all CPUs."""
    if when == "reconcile" and not getattr(self, "has_reconciled", False):
        self.has_reconciled = True
        for provider in providers:
            provider.remove_stale_state({}, when)
    rule()


@seeds("CPU-RESTART-005").around(StartedNode, "admit")
def a_pass_wipes_pods_that_are_not_admitted_again_yet(rule: Any, self: Any, args: Any) -> Any:
    """Releases the CPUs of pods that haven't been readmitted since the start."""
    admitted: frozenset[str] = getattr(self, "admitted", frozenset())
    self.admitted = admitted | {args.pod.get("metadata", {}).get("uid")}
    present = {uid: pod for uid, pod in self.pods.items() if uid in self.admitted}
    self.cpus.remove_stale_state(present, "reconcile")
    return rule()
