"""Violators of the requirements of memory that is pinned and freed, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.deviations.pods import ClassBySums
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory import requests
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-static")

_MEMORY = "memory"


def _part(changes: Changes, change: Callable[[Any, Any, dict[str, int]], dict[str, int]]) -> None:
    """Lets containers be due other amounts; `change` is given pod, container and amounts."""
    changes.around(
        requests,
        "part",
        lambda original, pod, container: change(pod, container, original(pod, container)),
    )


def _written(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the Memory Manager read other quantities of memory than containers request."""

    def part(original: Any, pod: Any, container: Any) -> Any:
        asked = container.requests
        if _MEMORY in asked:
            asked = {**asked, _MEMORY: change(asked[_MEMORY])}
        return original(pod, dataclasses.replace(container, requests=asked))

    changes.around(requests, "part", part)


def _served(changes: Changes, also: Callable[[Any], bool]) -> None:
    """Lets the memory of more pods be pinned."""
    changes.around(policies, "is_served", lambda original, pod: original(pod) or also(pod))


def _narrowest(changes: Changes, change: Callable[[Any, Any, int], Any]) -> None:
    """Lets the policy choose other nodes of a demand; `containing` is 0 without an affinity."""

    def narrowest(demand: Any, containing: int = 0) -> Any:
        return change(demand, evaluation.narrowest(demand, containing), containing)

    changes.replace(policies, "evaluation", SimpleNamespace(narrowest=narrowest))


def _machine(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the policy see other nodes; `change` is given each node and the machine."""

    def made(original: Any, machine: Any, *rest: Any) -> Any:
        nodes = tuple(change(node, machine) for node in machine.topology or ())
        return original(msgspec.structs.replace(machine, topology=nodes), *rest)

    changes.around(policies, "make_static", made)


# Who gets how much


@seeds("MEM-STATIC-001")
def init_containers_get_no_memory(changes: Changes) -> None:
    """A plausible author pins memory for what runs on, and init containers end."""
    _part(changes, lambda pod, container, found: {} if container.passes else found)


@seeds("MEM-STATIC-001")
def sidecars_get_no_memory(changes: Changes) -> None:
    """A plausible author goes through spec.containers, and sidecars are not there."""
    _part(changes, lambda pod, container, found: {} if container.sidecar else found)


@seeds("MEM-STATIC-001")
def only_the_first_app_container_gets_memory(changes: Changes) -> None:
    """A plausible author takes a pod for one container with helpers."""

    def part(pod: Any, container: Any, found: dict[str, int]) -> dict[str, int]:
        first = next((one.name for one in pod.containers if not one.init), None)
        return found if container.init or container.name == first else {}

    _part(changes, part)


@seeds("MEM-STATIC-002")
def burstable_pods_whose_memory_is_limited_get_memory(changes: Changes) -> None:
    """A plausible author asks whether memory is limited to what is requested, and not of CPUs."""

    def limited(container: Any) -> bool:
        asked, most = container.requests.get(_MEMORY, 0), container.limits.get(_MEMORY, 0)
        return quantity.parse(asked) == quantity.parse(most) != 0

    _served(
        changes,
        lambda pod: (
            pod.qos == "Burstable"
            and not pod.shared_pool
            and pod.budget is None
            and all(map(limited, pod.containers))
        ),
    )


@seeds("MEM-STATIC-002")
def best_effort_pods_get_huge_pages(changes: Changes) -> None:
    """A plausible author knows that huge pages are always limited, and pins them for every pod."""
    _served(changes, lambda pod: pod.qos == "BestEffort" and not pod.shared_pool)


@seeds("MEM-STATIC-005")
def requests_and_limits_of_a_pod_are_compared_in_sum(changes: Changes) -> None:
    """A plausible author adds up what the containers request, and what they limit."""
    _served(
        changes,
        lambda pod: (
            pod.budget is None
            and not pod.shared_pool
            and ClassBySums.qos_class(pod.containers) == "Guaranteed"
        ),
    )


@seeds("MEM-STATIC-007")
def fractions_of_bytes_are_rounded_up(changes: Changes) -> None:
    """A plausible author reads the quantity as the scheduler does."""

    def whole(text: Any) -> Any:
        return text if quantity.parse(text).denominator == 1 else str(quantity.value(text))

    _written(changes, whole)


# From which nodes


def _singles(demand: Any) -> list[int]:
    return [1 << node for node in demand.nodes if demand.met_by(1 << node)]


def _of_singles(changes: Changes, best: Callable[[Any, list[int]], int]) -> None:
    """Lets the policy take another one of the nodes that have enough by themselves."""

    def choose(demand: Any, chosen: Any, containing: int) -> Any:
        if containing or chosen is None or chosen.nodes.bit_count() != 1:
            return chosen
        return TopologyHint(best(demand, _singles(demand)), chosen.preferred)

    _narrowest(changes, choose)


def _free(demand: Any, nodes: int) -> int:
    return sum(need.free_on(nodes) for need in demand.needs)


@seeds("MEM-STATIC-008")
def memory_comes_from_the_node_with_least_free(changes: Changes) -> None:
    """A plausible author packs memory tightly, as CPUs are."""
    _of_singles(
        changes, lambda demand, nodes: min(nodes, key=lambda one: (_free(demand, one), one))
    )


@seeds("MEM-STATIC-009")
def pods_without_an_affinity_must_fit_one_node(changes: Changes) -> None:
    """A plausible author looks for one node with enough, and gives up."""
    _narrowest(
        changes,
        lambda demand, chosen, containing: (
            chosen if containing or chosen is None or chosen.nodes.bit_count() == 1 else None
        ),
    )


@seeds("MEM-STATIC-010")
def nodes_without_memory_have_their_share_of_all(changes: Changes) -> None:
    """A plausible author takes 0 for unknown, and divides the machine's memory by its nodes."""

    def node(one: Any, machine: Any) -> Any:
        share = machine.memory_capacity // len(machine.topology)
        return msgspec.structs.replace(one, memory=one.memory or share)

    _machine(changes, node)


@seeds("MEM-STATIC-011")
def nodes_without_cpus_have_no_memory(changes: Changes) -> None:
    """A plausible author goes through the nodes of CPUs."""
    _machine(
        changes,
        lambda one, _: one if one.cores else msgspec.structs.replace(one, memory=0, hugepages=()),
    )


# Again


@seeds("MEM-STATIC-012")
def pods_admitted_again_are_placed_anew(changes: Changes) -> None:
    """A plausible author frees what a pod had before serving it."""

    def allocate(original: Any, self: Any, held: Any, pod: Any, *rest: Any) -> Any:
        if policies.is_served(pod) and not rest[0].init:
            held = held.release(pod.uid, rest[0].name)
        return original(self, held, pod, *rest)

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-STATIC-014")
def containers_that_ask_for_nothing_have_an_entry(changes: Changes) -> None:
    """A plausible author notes for every container what it got, be it nothing."""

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        after = original(self, held, pod, container, affinity)
        if policies.is_served(pod) and not self.asks(pod, container):
            after = after.with_blocks(pod.uid, container.name, ())
        return after

    changes.around(StaticMemoryPolicy, "allocate", allocate)
