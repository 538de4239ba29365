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
        original: Any, policy: Any, state: Any, pod: Pod, container: PodContainer
    ) -> Any:
        count = pod.exclusive_cpus(container)
        held = state.of(pod.uid, container.name)

        def by_the_rules() -> Any:
            return original(policy, state, pod, container)

        if held is None or not count:
            return by_the_rules()
        return instead(by_the_rules, policy, state, held, count, container)

    changes.around(hints, "for_container", for_container)


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


@seeds("CPU-HINT-011")
def a_container_that_holds_enough_is_hinted_there(changes: Changes) -> None:
    """Refuses too few CPUs, and is content with more."""
    _held(
        changes,
        lambda rules, policy, state, held, count, container: (
            {"cpu": hints.generate(policy, held, 0, count)} if held.bit_count() > count else rules()
        ),
    )


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
def only_the_last_init_container_counts_in_scope_pod(changes: Changes) -> None:
    """Goes through the init containers, and keeps the last request."""

    def together(pod: Pod) -> int:
        starting = [one for one in pod.containers if one.passes]
        rest = tuple(one for one in pod.containers if not one.passes or one is starting[-1])
        return containers.at_once(rest, pod.exclusive_cpus)

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
