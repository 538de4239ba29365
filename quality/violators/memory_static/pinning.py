"""Violators of the requirements of memory that is pinned and freed, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.departures.pods import ClassBySums
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory import requests
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.requests import AllocationError
from numaproof.reference.pods import qos, quantity
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.search import evaluation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-static")

_MEMORY = "memory"
_PAGES = "hugepages-"


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
def containers_are_guaranteed_one_by_one(changes: Changes) -> None:
    """A plausible author looks at the container that is to be served, and not at its pod."""

    def judged(pod: Any, container: Any) -> Any:
        alone = pod.budget is None and qos.class_of((container,)) == "Guaranteed"
        return dataclasses.replace(pod, qos="Guaranteed") if alone else pod

    changes.around(
        StaticMemoryPolicy,
        "hints_for_container",
        lambda original, self, held, reuse, pod, container: original(
            self, held, reuse, judged(pod, container), container
        ),
    )
    changes.around(
        StaticMemoryPolicy,
        "allocate",
        lambda original, self, held, reuse, pod, container, *rest: original(
            self, held, reuse, judged(pod, container), container, *rest
        ),
    )


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


_MEBIBYTE = 1 << 20
_BINARY = {"k": "Ki", "M": "Mi", "G": "Gi", "T": "Ti"}


@seeds("MEM-STATIC-006")
def memory_is_pinned_in_whole_mebibytes(changes: Changes) -> None:
    """A plausible author keeps the books in mebibytes, and rounds up."""
    _part(
        changes,
        lambda pod, container, found: {
            kind: -(-size // _MEBIBYTE) * _MEBIBYTE if kind == _MEMORY else size
            for kind, size in found.items()
        },
    )


@seeds("MEM-STATIC-006")
def decimal_units_of_memory_are_binary(changes: Changes) -> None:
    """A plausible author takes 1G for 1Gi."""

    def binary(text: Any) -> Any:
        unit = _BINARY.get(str(text)[-1:])
        return f"{str(text)[:-1]}{unit}" if unit else text

    _written(changes, binary)


@seeds("MEM-STATIC-007")
def fractions_of_bytes_are_rounded_up(changes: Changes) -> None:
    """A plausible author reads the quantity as the scheduler does."""

    def whole(text: Any) -> Any:
        return text if quantity.parse(text).denominator == 1 else str(quantity.value(text))

    _written(changes, whole)


@seeds("MEM-STATIC-007")
def binary_amounts_with_a_point_are_integers(changes: Changes) -> None:
    """A plausible author finds that 0.5Gi is a whole number of bytes."""

    def whole(text: Any) -> Any:
        binary = "." in str(text) and quantity.style(text) == "binary"
        return str(quantity.value(text)) if binary and quantity.parse(text) % 1 == 0 else text

    _written(changes, whole)


# From which nodes


def _singles(demand: Any) -> list[int]:
    return [1 << node for node in demand.nodes if demand.met_by(1 << node)]


@seeds("MEM-STATIC-003")
def memory_is_interleaved_over_two_nodes(changes: Changes) -> None:
    """A plausible author spreads memory for bandwidth where two nodes have room."""

    def spread(demand: Any, chosen: Any, containing: int) -> Any:
        if containing or chosen is None or chosen.nodes.bit_count() != 1:
            return chosen
        pairs = [chosen.nodes | other for other in _singles(demand) if other != chosen.nodes]
        free = [pair for pair in pairs if demand.met_by(pair)]
        return TopologyHint(free[0], preferred=False) if free else chosen

    _narrowest(changes, spread)


@seeds("MEM-STATIC-003")
def memory_comes_from_all_nodes_without_an_affinity(changes: Changes) -> None:
    """A plausible author takes no affinity for an affinity to all nodes."""

    def everywhere(demand: Any, chosen: Any, containing: int) -> Any:
        every = sum(1 << node for node in demand.nodes)
        wide = not containing and chosen is not None and demand.met_by(every)
        return TopologyHint(every, chosen.preferred) if wide else chosen

    _narrowest(changes, everywhere)


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
def memory_comes_from_the_node_with_most_free(changes: Changes) -> None:
    """A plausible author balances the nodes."""
    _of_singles(
        changes, lambda demand, nodes: max(nodes, key=lambda one: (_free(demand, one), -one))
    )


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


@seeds("MEM-STATIC-009")
def the_last_byte_is_never_handed_out(changes: Changes) -> None:
    """A plausible author asks for more free memory than is requested, not for as much."""

    def strict(demand: Any, chosen: Any, containing: int) -> Any:
        needs = tuple(dataclasses.replace(need, amount=need.amount + 1) for need in demand.needs)
        stricter = evaluation.narrowest(dataclasses.replace(demand, needs=needs), containing)
        if containing or chosen is None or stricter is None:
            return chosen if containing else None
        return TopologyHint(stricter.nodes, chosen.preferred)

    _narrowest(changes, strict)


@seeds("MEM-STATIC-009")
def pods_without_room_run_unpinned(changes: Changes) -> None:
    """A plausible author does without pinning where nothing is aligned anyway."""

    def allocate(original: Any, self: Any, held: Any, reuse: Any, *rest: Any) -> Any:
        try:
            return original(self, held, reuse, *rest)
        except AllocationError as error:
            if "default NUMA affinity" not in str(error):
                raise
            return held, reuse

    changes.around(StaticMemoryPolicy, "allocate", allocate)


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


@seeds("MEM-STATIC-011")
def nodes_without_cpus_have_half_of_their_memory(changes: Changes) -> None:
    """A plausible author keeps some of slow memory back."""
    _machine(
        changes,
        lambda one, _: one if one.cores else msgspec.structs.replace(one, memory=one.memory // 2),
    )


# Again


@seeds("MEM-STATIC-012")
def pods_admitted_again_take_their_memory_twice(changes: Changes) -> None:
    """A plausible author finds the blocks of the container, and reserves them all the same."""

    def allocate(original: Any, self: Any, held: Any, reuse: Any, pod: Any, *rest: Any) -> Any:
        had = held.of(pod.uid, rest[0].name)
        after, reuse = original(self, held, reuse, pod, *rest)
        for block in had or () if after is held else ():
            after = after.reserve(block, block.size)
        return after, reuse

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-STATIC-012")
def pods_admitted_again_are_placed_anew(changes: Changes) -> None:
    """A plausible author frees what a pod had before serving it."""

    def allocate(original: Any, self: Any, held: Any, reuse: Any, pod: Any, *rest: Any) -> Any:
        if policies.is_served(pod) and not rest[0].init:
            held = held.release(pod.uid, rest[0].name)
        return original(self, held, reuse, pod, *rest)

    changes.around(StaticMemoryPolicy, "allocate", allocate)


@seeds("MEM-STATIC-014")
def containers_that_ask_for_nothing_need_a_node(changes: Changes) -> None:
    """A plausible author serves every container of a Guaranteed pod alike."""
    changes.replace(StaticMemoryPolicy, "asks", lambda self, pod, container: True)


@seeds("MEM-STATIC-014")
def containers_that_ask_for_nothing_have_an_entry(changes: Changes) -> None:
    """A plausible author notes for every container what it got, be it nothing."""

    def allocate(
        original: Any, self: Any, held: Any, reuse: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        after, reuse = original(self, held, reuse, pod, container, affinity)
        if policies.is_served(pod) and not self.asks(pod, container):
            after = after.with_blocks(pod.uid, container.name, ())
        return after, reuse

    changes.around(StaticMemoryPolicy, "allocate", allocate)
