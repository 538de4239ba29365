"""Violators of the requirements of CPUs and init containers, each breaking one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.state import ReusableCPUs
from numaproof.reference.cpu.topology import union
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("cpu-init")


def _without_reuse(
    changes: Changes, applies: Callable[[Any, Any, int, Pod, PodContainer], bool]
) -> None:
    """Gives a container free CPUs alone where that applies.

    It is asked with the policy, the state, what could be reused, the pod and the container.
    """

    def allocate(
        original: Any, self: Any, state: Any, pod: Pod, container: PodContainer, at: Any
    ) -> Any:
        reusable = state.reuse.of(pod.uid)
        if state.of(pod.uid, container.name) is not None or not reusable:
            return original(self, state, pod, container, at)
        if not applies(self, state, reusable, pod, container):
            return original(self, state, pod, container, at)
        bare = replace(state, reuse=ReusableCPUs(pod.uid, 0))
        made = original(self, bare, pod, container, at)
        return replace(made, reuse=ReusableCPUs(pod.uid, reusable | made.reuse.of(pod.uid)))

    changes.around(StaticCPUPolicy, "allocate", allocate)


def _afterwards(
    changes: Changes, left: Callable[[Any, Any, Pod, PodContainer, int, int], int]
) -> None:
    """Lets `left` say what can be reused after a container.

    It is asked with the state before, the state after, the pod, the container, and what could be
    reused before and can be reused by the rules.
    """

    def allocate(
        original: Any, self: Any, state: Any, pod: Pod, container: PodContainer, at: Any
    ) -> Any:
        before, reusable = state, state.reuse.of(pod.uid)
        state = original(self, state, pod, container, at)
        if state.of(pod.uid, container.name) is None:
            return state
        after = left(before, state, pod, container, reusable, state.reuse.of(pod.uid))
        return replace(state, reuse=ReusableCPUs(pod.uid, after))

    changes.around(StaticCPUPolicy, "allocate", allocate)


# CPU-INIT-001 to -003: what is used again


@seeds("CPU-INIT-001")
def only_the_first_app_container_reuses_cpus(changes: Changes) -> None:
    """Hands the CPUs of init containers over once, all that is left with them."""
    _without_reuse(
        changes,
        lambda policy, state, reusable, pod, container: (
            not container.init
            and container is not next(one for one in pod.containers if not one.init)
        ),
    )


@seeds("CPU-INIT-001")
def app_containers_larger_than_what_is_reusable_reuse_nothing(changes: Changes) -> None:
    """Reuses CPUs where they suffice, and does not add free ones to them."""
    _without_reuse(
        changes,
        lambda policy, state, reusable, pod, container: (
            not container.init and pod.exclusive_cpus(container) > reusable.bit_count()
        ),
    )


@seeds("CPU-INIT-001")
def the_last_init_container_alone_leaves_cpus(changes: Changes) -> None:
    """Notes what the init container had, in the place of what the one before it had."""
    _afterwards(
        changes,
        lambda before, state, pod, container, reusable, after: (
            state.of(pod.uid, container.name) if container.passes else after
        ),
    )


@seeds("CPU-INIT-002")
def init_containers_reuse_cpus_in_need_alone(changes: Changes) -> None:
    """Gives each init container CPUs of its own while there are some."""
    _without_reuse(
        changes,
        lambda policy, state, reusable, pod, container: (
            container.passes
            and pod.exclusive_cpus(container) <= policy.available(state).bit_count()
        ),
    )


@seeds("CPU-INIT-003")
def init_containers_after_a_sidecar_reuse_nothing(changes: Changes) -> None:
    """Starts anew after a sidecar, which keeps what it has."""

    def after_sidecar(
        _policy: Any, _state: Any, _reusable: int, pod: Pod, container: PodContainer
    ) -> bool:
        earlier = pod.containers[: pod.containers.index(container)]
        return container.passes and any(one.sidecar for one in earlier)

    _without_reuse(changes, after_sidecar)


# CPU-INIT-004: sidecars


@seeds("CPU-INIT-004")
def what_a_sidecar_takes_over_can_be_taken_once_more(changes: Changes) -> None:
    """Forgets to strike CPUs off that a sidecar took from an init container."""
    _afterwards(
        changes,
        lambda before, state, pod, container, reusable, after: (
            reusable if container.sidecar else after
        ),
    )


@seeds("CPU-INIT-004")
def only_the_first_sidecar_keeps_its_cpus(changes: Changes) -> None:
    """Looks at the first init container to see whether they are restartable."""

    def left(
        _before: Any, state: Any, pod: Pod, container: PodContainer, reusable: int, after: int
    ) -> int:
        first = next((one for one in pod.containers if one.sidecar), container)
        later = container.sidecar and container is not first
        return reusable | (state.of(pod.uid, container.name) or 0) if later else after

    _afterwards(changes, left)


# CPU-INIT-005 and -006: the end of an init container


def _idle(changes: Changes, applies: Callable[[int, int], bool]) -> None:
    """Keeps the CPUs of an init container that has ended out of the pool while its pod is there."""

    def remove(original: Any, self: Any, args: Any) -> Any:
        before = self.cpus.state
        done = original(self, args)
        static, state = self.setup.cpu, self.cpus.state
        if static is None or args.uid in before.pods:
            return done
        if args.container is None:
            free = static.allocatable if static.options.strict else static.topology.cpus
            held = union(cpus for _, _, cpus in state) | union(state.pods.values())
            self.cpus.state = replace(state, shared=free & ~held)
        elif self.pods[args.uid].container(args.container).passes:
            own = before.of(args.uid, args.container) or 0
            others = union(state.exclusive.get(args.uid, {}).values())
            if applies(own, others):
                self.cpus.state = replace(state, shared=state.shared & ~(own & ~others))
        self.save()
        return done

    changes.around(StartedNode, "remove", remove)


@seeds("CPU-INIT-006")
def what_nobody_took_over_returns_with_the_pod(changes: Changes) -> None:
    """Frees nothing at the end of an init container that no other one reused."""
    _idle(changes, lambda own, others: not own & others)


# CPU-INIT-007: within one pod, and once


@seeds("CPU-INIT-007")
def the_next_pod_reuses_the_cpus_of_init_containers(changes: Changes) -> None:
    """Keeps what can be reused without the pod that it belongs to."""
    changes.around(ReusableCPUs, "of", lambda original, self, uid: self.cpus)


@seeds("CPU-INIT-007")
def every_app_container_reuses_the_same_cpus(changes: Changes) -> None:
    """Strikes nothing off what can be reused."""
    _afterwards(
        changes,
        lambda before, state, pod, container, reusable, after: (
            after if container.init else reusable
        ),
    )


@seeds("CPU-INIT-007")
def a_container_that_comes_back_reuses_what_another_has_taken(changes: Changes) -> None:
    """Works out anew what can be reused, and skips app containers that have their CPUs."""
    _afterwards(
        changes,
        lambda before, state, pod, container, reusable, after: (
            reusable
            if not container.init and before.of(pod.uid, container.name) is not None
            else after
        ),
    )


# CPU-INIT-008: alignment


# CPU-INIT-009: init containers that are gone


@seeds("CPU-INIT-009")
def an_init_container_has_ended_if_all_others_are_pinned(changes: Changes) -> None:
    """Wants CPUs of its own for each app container, and forgets those that ask for none."""

    def has_ended(original: Any, self: Any, state: Any, pod: Pod, container: PodContainer) -> Any:
        apps = (one for one in pod.containers if not one.init)
        return original(self, state, pod, container) and all(
            state.of(pod.uid, one.name) is not None for one in apps
        )

    changes.around(StaticCPUPolicy, "has_ended", has_ended)


@seeds("CPU-INIT-009")
def only_the_first_init_container_is_known_to_be_gone(changes: Changes) -> None:
    """Skips one init container, and serves the others again."""
    changes.around(
        StaticCPUPolicy,
        "has_ended",
        lambda original, self, state, pod, container: (
            original(self, state, pod, container) and container is pod.containers[0]
        ),
    )
