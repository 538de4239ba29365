"""Violators of the requirements of CPU hints: reuse, what is held, pods as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.reference.cpu import hints
from numaproof.reference.cpu.topology import union
from numaproof.reference.pods import containers
from numaproof.reference.pods.pod import Pod
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.pods.containers import PodContainer

seeds = SubjectBugs("cpu-hints")


# CPU-HINT-009: near what can be reused


def _touching(changes: Changes, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
    """Lets a hint contain a node of each of other sets."""

    def generate(original: Any, *args: Any) -> Any:
        demand = original(*args)
        return replace(demand, touching=change(demand.touching))

    changes.around(hints, "generate", generate)


@seeds("CPU-HINT-009")
def hints_touch_any_node_that_can_be_reused(changes: Changes) -> None:
    """Is content with a hint that has one of the nodes."""
    _touching(changes, lambda groups: (union(groups),) if groups else ())


@seeds("CPU-HINT-009")
def hints_cover_the_first_node_that_can_be_reused(changes: Changes) -> None:
    """Looks for the node of the lowest CPU that can be reused."""
    _touching(changes, lambda groups: groups[:1])


@seeds("CPU-HINT-009")
def hints_need_not_cover_what_can_be_reused(changes: Changes) -> None:
    """Adds CPUs that can be reused to the free ones, and treats them alike."""
    _touching(changes, lambda groups: ())


# CPU-HINT-010 and -011: what is held


def _held(
    changes: Changes, instead: Callable[[Any, Any, Any, int, int, PodContainer], Any]
) -> None:
    """Lets `instead` give the hints of a container that holds CPUs.

    It is asked with how they are worked out, the policy, the state, the CPUs held, how many the
    container is due, and the container.
    """

    def for_container(
        original: Any, policy: Any, state: Any, reuse: Any, pod: Pod, container: PodContainer
    ) -> Any:
        count = pod.exclusive_cpus(container)
        held = state.of(pod.uid, container.name)

        def by_the_rules() -> Any:
            return original(policy, state, reuse, pod, container)

        if held is None or not count:
            return by_the_rules()
        return instead(by_the_rules, policy, state, held, count, container)

    changes.around(hints, "for_container", for_container)


@seeds("CPU-HINT-010")
def free_cpus_count_for_a_container_that_holds_its_own(changes: Changes) -> None:
    """Puts what the container holds back among the free CPUs, and looks at them all."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {"cpu": hints.generate(policy, policy.available(state) | held, 0, count)}
            if held.bit_count() == count
            else rules()
        ),
    )


@seeds("CPU-HINT-010")
def init_containers_are_hinted_as_new_ones(changes: Changes) -> None:
    """Takes the CPUs that an init container holds for free ones, which its pod does not need."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {"cpu": hints.generate(policy, policy.available(state), 0, count)}
            if held.bit_count() == count and container.passes
            else rules()
        ),
    )


@seeds("CPU-HINT-010")
def a_container_that_holds_its_cpus_has_no_cpu_hints(changes: Changes) -> None:
    """Has nothing to say where nothing is to be allocated."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {} if held.bit_count() == count else rules()
        ),
    )


@seeds("CPU-HINT-011")
def a_container_that_holds_other_cpus_has_no_preference(changes: Changes) -> None:
    """Returns nothing where the numbers differ, which is not an empty list."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {} if held.bit_count() != count else rules()
        ),
    )


@seeds("CPU-HINT-011")
def a_container_that_holds_enough_is_hinted_there(changes: Changes) -> None:
    """Refuses too few CPUs, and is content with more."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {"cpu": hints.generate(policy, held, 0, count)} if held.bit_count() > count else rules()
        ),
    )


@seeds("CPU-HINT-011")
def a_container_that_holds_other_cpus_is_hinted_as_a_new_one(changes: Changes) -> None:
    """Looks for room for what is asked for now."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {"cpu": hints.generate(policy, policy.available(state) | held, 0, count)}
            if held.bit_count() != count
            else rules()
        ),
    )


@seeds("CPU-HINT-011")
def other_cpus_of_a_container_do_not_matter_in_scope_pod(changes: Changes) -> None:
    """Adds up what the containers hold, and does not compare it with what each is due."""

    def for_pod(original: Any, policy: Any, state: Any, reuse: Any, pod: Pod) -> Any:
        found = original(policy, state, reuse, pod)
        held = union(state.of(pod.uid, one.name) or 0 for one in pod.containers)
        if found is not hints.UNSATISFIABLE or not held or pod.budget is not None:
            return found
        free = policy.available(state) | held
        return {"cpu": hints.generate(policy, free, 0, pod.exclusive_cpus_at_once())}

    changes.around(hints, "for_pod", for_pod)


# CPU-HINT-012 and -013: scope pod


def _at_once(changes: Changes, together: Callable[[Pod], int]) -> None:
    """Lets `together` say how many CPUs a pod needs in scope pod."""
    changes.around(
        Pod,
        "exclusive_cpus_at_once",
        lambda original, pod: original(pod) if pod.budget is not None else together(pod),
    )


@seeds("CPU-HINT-012")
def init_containers_count_all_together_in_scope_pod(changes: Changes) -> None:
    """Takes the larger of two sums."""

    def together(pod: Pod) -> int:
        starting = sum(pod.exclusive_cpus(one) for one in pod.containers if one.passes)
        return max(starting, containers.at_once(pod.containers, pod.exclusive_cpus))

    _at_once(changes, together)


@seeds("CPU-HINT-012")
def the_largest_app_container_counts_alone_in_scope_pod(changes: Changes) -> None:
    """Takes the largest request of all."""

    def together(pod: Pod) -> int:
        apps = [one for one in pod.containers if not one.init]
        largest = max(apps, key=pod.exclusive_cpus)
        rest = tuple(one for one in pod.containers if one.init or one is largest)
        return containers.at_once(rest, pod.exclusive_cpus)

    _at_once(changes, together)


@seeds("CPU-HINT-012")
def only_the_last_init_container_counts_in_scope_pod(changes: Changes) -> None:
    """Goes through the init containers, and keeps the last request."""

    def together(pod: Pod) -> int:
        starting = [one for one in pod.containers if one.passes]
        rest = tuple(one for one in pod.containers if not one.passes or one is starting[-1])
        return containers.at_once(rest, pod.exclusive_cpus)

    _at_once(changes, together)


@seeds("CPU-HINT-013")
def sidecars_count_beside_app_containers_alone(changes: Changes) -> None:
    """Adds sidecars to the app containers, and forgets that init containers start beside them."""

    def together(pod: Pod) -> int:
        starting = [pod.exclusive_cpus(one) for one in pod.containers if one.passes]
        running = sum(pod.exclusive_cpus(one) for one in pod.containers if not one.passes)
        return max(running, *starting, 0)

    _at_once(changes, together)


@seeds("CPU-HINT-013")
def sidecars_count_beside_all_init_containers(changes: Changes) -> None:
    """Adds sidecars to every init container, even to those that end before they start."""

    def together(pod: Pod) -> int:
        due = pod.exclusive_cpus
        sidecars = sum(due(one) for one in pod.containers if one.sidecar)
        starting = max((due(one) for one in pod.containers if one.passes), default=0)
        running = sum(due(one) for one in pod.containers if not one.init)
        return sidecars + max(starting, running)

    _at_once(changes, together)


@seeds("CPU-HINT-013")
def sidecars_count_as_init_containers_in_scope_pod(changes: Changes) -> None:
    """Knows one kind of init container."""
    _at_once(
        changes,
        lambda pod: containers.at_once(
            tuple(replace(one, sidecar=False) for one in pod.containers), pod.exclusive_cpus
        ),
    )
