"""Violators of the CPUs of init containers and sidecars, and of restarts."""

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


# Init


@shape(StaticCPUPolicy, "allocate")
def _without_reuse(
    applies: Change, rule: Any, self: Any, state: Any, pod: Pod, container: Any
) -> Any:
    """Gives a container free CPUs alone where that applies.

    It is asked with the policy, the state, what could be reused, the pod and the container.
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
    """Lets `choose_reusable` say what can be reused after a container.

    It is asked with the state before, the state after, the pod, the container, and what could be
    reused before and can be reused by the rules.
    """
    if new_state.of(pod.uid, container.name) is None:
        return new_state
    earlier, by_rule = state.reuse.of(pod.uid), new_state.reuse.of(pod.uid)
    reusable = choose_reusable(state, new_state, pod, container, earlier, by_rule)
    return replace(new_state, reuse=ReusableCPUs(pod.uid, reusable))


# CPU-INIT-001 to -003: what is used again


@seeds("CPU-INIT-001").by(_without_reuse)
def only_the_first_app_container_reuses_cpus(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Hands the CPUs of init containers over once, all that is left with them."""
    return not container.init and container is not next(
        one for one in pod.containers if not one.init
    )


@seeds("CPU-INIT-001").by(_without_reuse)
def app_containers_larger_than_what_is_reusable_reuse_nothing(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Reuses CPUs where they suffice, and does not add free ones to them."""
    return not container.init and pod.exclusive_cpus(container) > reusable.bit_count()


@seeds("CPU-INIT-001").by(_change_reusable)
def the_last_init_container_alone_leaves_cpus(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Notes what the init container had, in the place of what the one before it had."""
    return state.of(pod.uid, container.name) if container.runs_to_completion else after


@seeds("CPU-INIT-002").by(_without_reuse)
def init_containers_reuse_cpus_in_need_alone(
    policy: Any, state: Any, reusable: int, pod: Pod, container: PodContainer
) -> Any:
    """Gives each init container CPUs of its own while there are some."""
    return (
        container.runs_to_completion
        and pod.exclusive_cpus(container) <= policy.available(state).bit_count()
    )


@seeds("CPU-INIT-003").by(_without_reuse)
def init_containers_after_a_sidecar_reuse_nothing(
    _policy: Any, _state: Any, _reusable: int, pod: Pod, container: PodContainer
) -> bool:
    """Starts anew after a sidecar, which keeps what it has."""
    earlier = pod.containers[: pod.containers.index(container)]
    return container.runs_to_completion and any(one.sidecar for one in earlier)


# CPU-INIT-004: sidecars


@seeds("CPU-INIT-004").by(_change_reusable)
def what_a_sidecar_takes_over_can_be_taken_once_more(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Forgets to strike CPUs off that a sidecar took from an init container."""
    return reusable if container.sidecar else after


@seeds("CPU-INIT-004").by(_change_reusable)
def only_the_first_sidecar_keeps_its_cpus(
    _before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> int:
    """Looks at the first init container to see whether they are restartable."""
    first = next((one for one in pod.containers if one.sidecar), container)
    later = container.sidecar and container is not first
    return reusable | (state.of(pod.uid, container.name) or 0) if later else after


# CPU-INIT-005 and -006: the end of an init container


@seeds("CPU-INIT-006").around(StartedNode, "remove")
def what_nobody_took_over_returns_with_the_pod(rule: Any, self: Any, args: Any) -> Any:
    """Frees nothing at the end of an init container that no other one reused."""
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
    """Keeps what can be reused without the pod that it belongs to."""


@seeds("CPU-INIT-007").by(_change_reusable)
def every_app_container_reuses_the_same_cpus(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Strikes nothing off what can be reused."""
    return after if container.init else reusable


@seeds("CPU-INIT-007").by(_change_reusable)
def a_container_that_comes_back_reuses_what_another_has_taken(
    before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
) -> Any:
    """Works out anew what can be reused, and skips app containers that have their CPUs."""
    return (
        reusable if not container.init and before.of(pod.uid, container.name) is not None else after
    )


# CPU-INIT-009: init containers that are gone


@seeds("CPU-INIT-009").around(StaticCPUPolicy, "has_ended")
def an_init_container_has_ended_if_all_others_are_pinned(rule: Any, state: Any, pod: Pod) -> Any:
    """Wants CPUs of its own for each app container, and forgets those that ask for none."""
    apps = (one for one in pod.containers if not one.init)
    return rule() and all(state.of(pod.uid, one.name) is not None for one in apps)


@seeds("CPU-INIT-009").around(StaticCPUPolicy, "has_ended")
def only_the_first_init_container_is_known_to_be_gone(rule: Any, pod: Any, container: Any) -> Any:
    """Skips one init container, and serves the others again."""
    return rule() and container is pod.containers[0]


# CPU-RESTART-007: another reservation


@seeds("CPU-RESTART-007").around(startup, "start_cpus")
def another_reservation_is_not_kept_free(rule: Any, setup: Any, state_dir: Path) -> Any:
    """Starts with the new reservation, and goes on handing out CPUs by the old one."""
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
    """Does something to the checkpoint when the CPU Manager does not start."""
    try:
        return rule()
    except StartError as error:
        spoil(Path(state_dir) / cpu_checkpoint.FILE_NAME, str(error))
        raise


@seeds("CPU-RESTART-008").by(_spoil_checkpoint)
def a_checkpoint_that_does_not_fit_is_moved_aside(file: Path, why: str) -> None:
    """Saves a checkpoint of another machine or reservation under another name."""
    if "could not restore state" not in why and file.exists():
        file.rename(f"{file}.refused")


@seeds("CPU-RESTART-008").around(startup, "start")
def a_start_with_a_bad_configuration_removes_the_checkpoint(rule: Any, args: Any) -> Any:
    """Clears the state directory before it reads the configuration, and fills it later."""
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
    """Writes the CPU Manager's file anew, and only then finds that memory is refused."""
    manager.remove_stale_state({pod.uid: pod for pod in present}, "reconcile")
    manager.save()
    return manager


# CPU-RESTART-009: pods that have CPUs as a whole


@seeds("CPU-RESTART-009").around(StaticCPUPolicy, "keeps")
def pods_with_init_containers_take_pod_level_cpus_anew(rule: Any, pod: Any) -> Any:
    """Takes a pod with init containers for one that has not started yet."""
    return rule() and not any(one.init for one in pod.containers)


@seeds("CPU-RESTART-009").around(StaticCPUPolicy, "allocate_pod")
def a_pod_admitted_again_has_pod_level_cpus_twice(rule: Any, state: Any, pod: Pod) -> Any:
    """Adds what it allocates to what the pod has."""
    own = state.pods.get(pod.uid, 0)
    if not own:
        return rule()
    rest = {uid: cpus for uid, cpus in state.pods.items() if uid != pod.uid}
    try:
        more = rule(state=replace(state, pods=rest))
    except (NotEnoughCPUsError, AdmissionError):
        return state
    return more.assign_pod(pod.uid, own | more.pods.get(pod.uid, 0))


# Restart


@shape(startup, "start_cpus", Changes.after)
def _change_restored_state(
    change: Change, manager: Any, setup: Any, present: tuple[Pod, ...]
) -> Any:
    """Lets the CPU Manager start with another state than the one that it restored."""
    if setup.cpu is not None:
        manager.state = change(setup, manager.state, present)
    return manager


@shape(StartedNode, "admit")
def _again(drops: Callable[[PodContainer], bool], rule: Any, self: Any, args: Any) -> Any:
    """Has a pod that is admitted again give back first what some of its containers hold."""
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
    """Restores init containers as if they had come to an end."""
    return _forget_cpus(state, present, lambda pod, container: container.sidecar)


@seeds("CPU-RESTART-001").by(_change_restored_state)
def a_restart_restores_one_container_of_a_pod(setup: Any, state: CPUState, present: Any) -> Any:
    """Keeps entries by pod while it reads them, so that the last app container wins."""
    return _forget_cpus(
        state,
        present,
        lambda pod, container: not container.init and container is not pod.containers[-1],
    )


@seeds("CPU-RESTART-001").by(_change_restored_state)
def a_restart_packs_all_pods_again(setup: Any, state: CPUState, present: Any) -> CPUState:
    """Works the CPUs out from the pods on the node, which leaves out the pods that have gone."""
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


# CPU-RESTART-003, -006, -010: a pod that is admitted again


@seeds("CPU-RESTART-003").of(_again, lambda container: not container.init)
def a_pod_admitted_again_is_placed_anew() -> None:
    """Treats every admission as the first one, once what the pod had is given back."""


@seeds("CPU-RESTART-003").around(StartedNode, "admit")
def a_pod_admitted_again_returns_spare_cpus_to_the_pool(rule: Any, self: Any, args: Any) -> Any:
    """Takes its init containers for ended ones."""
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
    """Has sidecars start again with their pod, and on other CPUs."""


@seeds("CPU-RESTART-006").around(StartedNode, "admit")
def pods_with_init_containers_are_placed_anew(rule: Any, self: Any, args: Any) -> Any:
    """Takes a pod with init containers for one that has not started yet."""
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
    """Lets `serve` allocate for an app container without CPUs whose pod is admitted again."""

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
    """Gives it free CPUs, as its init containers ended long ago."""
    manager.state = replace(manager.state, reuse=ReusableCPUs())
    rule(manager, pod, container, at)


# CPU-RESTART-004 and -005: what the first pass takes back


@seeds("CPU-RESTART-004").replace(CPUManager, "remove_stale_state")
def only_the_first_container_of_a_pod_that_left_is_reclaimed(
    self: Any, pods: Any, when: Any
) -> None:
    """Forgets the pod with the first entry that it takes back."""
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
    """Runs before the pods of the node are known, and takes everything back."""
    if when == "reconcile" and not getattr(self, "has_reconciled", False):
        self.has_reconciled = True
        for provider in providers:
            provider.remove_stale_state({}, when)
    rule()


@seeds("CPU-RESTART-005").around(StartedNode, "admit")
def a_pass_wipes_pods_that_are_not_admitted_again_yet(rule: Any, self: Any, args: Any) -> Any:
    """Counts as pods of the node those that have been admitted since the start, and runs then."""
    admitted: frozenset[str] = getattr(self, "admitted", frozenset())
    self.admitted = admitted | {args.pod.get("metadata", {}).get("uid")}
    present = {uid: pod for uid, pod in self.pods.items() if uid in self.admitted}
    self.cpus.remove_stale_state(present, "reconcile")
    return rule()
