"""Mutants of pinned memory."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.deviations.pods import ClassBySums
from numaproof.reference.errors import AdmissionError, AllocationError
from numaproof.reference.memory import hints, requests, state
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import NO_AFFINITY, TopologyHint
from numaproof.reference.topology.merge import Rules
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-static")


# Groups


MAX_NODES = 8
"""The maximum number of nodes for which hints are listed."""


def _narrowest(changes: Changes, change: Callable[[Any, Any, int], Any]) -> None:
    """Lets `change` replace the nodes that the policy chooses (`containing` is 0: no affinity)."""

    def narrowest(demand: Any, containing: int = 0, first_choice: int = 0) -> Any:
        return change(demand, evaluation.narrowest(demand, containing, first_choice), containing)

    changes.replace(policies, "evaluation", SimpleNamespace(narrowest=narrowest))


@shape(hints, "calculate_hints", Changes.after)
def change_hints(change: Callable[[Any, Any], Any], resources: Any, state: Any) -> Any:
    """Lets `change` replace the hints, given the demand and its hints."""
    if not resources or len(state.nodes) > MAX_NODES:
        return resources
    demand = next(iter(resources.values()))
    return dict.fromkeys(resources, tuple(change(demand, evaluation.list_hints(demand))))


def _several(nodes: int) -> bool:
    return nodes & (nodes - 1) != 0


# Groups of nodes


@seeds("MEM-GROUP-001").replace(
    StaticMemoryPolicy, "breaks_group", lambda self, memory_state, nodes: False
)
def affinities_break_groups() -> None:
    """Divides groups if the affinity does."""


@seeds("MEM-GROUP-001").replace(StaticMemoryPolicy, "breaks_group")
def affinities_widen_groups(self: Any, memory_state: Any, nodes: Any) -> Any:
    """Forbids dividing groups, but not widening them."""
    return any(
        memory.assignments and nodes >> node & 1 and memory.cells & ~nodes
        for node, memory in memory_state.nodes.items()
    )


@seeds("MEM-GROUP-001")
def nodes_in_use_alone_join_groups(changes: Changes) -> None:
    """Also treats single nodes in use as parts of a group."""
    changes.after(
        MemoryState,
        "demand",
        lambda demand: replace(
            demand, cells=tuple(cell for cell in demand.cells if _several(cell[1]))
        ),
    )
    changes.replace(
        StaticMemoryPolicy,
        "breaks_group",
        lambda self, memory_state, nodes: any(
            memory.assignments and nodes >> node & 1 and memory.cells not in (1 << node, nodes)
            for node, memory in memory_state.nodes.items()
        ),
    )


@seeds("MEM-GROUP-002")
def groups_have_two_nodes_at_most(changes: Changes) -> None:
    """Forms groups of at most two nodes."""
    pair = 2
    _narrowest(
        changes,
        lambda demand, hint, containing: (
            None if hint is not None and hint.nodes.bit_count() > pair else hint
        ),
    )
    change_hints(
        changes,
        lambda demand, hint_list: [hint for hint in hint_list if hint.nodes.bit_count() <= pair],
    )


@seeds("MEM-GROUP-002").by(_narrowest)
def requests_beyond_one_node_take_all_nodes(demand: Any, hint: Any, _: int) -> Any:
    """Uses all nodes for requests that don't fit on a single node."""
    every = sum(1 << node for node in demand.nodes)
    if hint is None or not _several(hint.nodes):
        return hint
    return TopologyHint(every, hint.preferred) if demand.met_by(every) else None


@seeds("MEM-GROUP-005").around(StaticMemoryPolicy, "allocate")
def small_containers_are_kept_out_of_groups(
    rule: Any, self: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Rejects small containers instead of adding them to a group."""
    after = rule()
    new = after.entries is not state.entries
    for block in after.of(pod.uid, container.name) or () if new else ():
        most = max(memory.tables[block.kind].allocatable for memory in self.empty.values())
        lowest = (block.nodes & -block.nodes).bit_length() - 1
        if _several(block.nodes) and block.size <= most and state.nodes[lowest].assignments:
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
    return after


@seeds("MEM-GROUP-007").after(StaticMemoryPolicy, "best")
def preferred_affinities_are_extended_anyway(
    hint: TopologyHint | None, containing: int
) -> TopologyHint | None:
    """Extends a preferred affinity with too little memory to a set that isn't preferred."""
    return hint._replace(preferred=True) if hint and containing else hint


@seeds("MEM-GROUP-008")
def unpreferred_affinities_are_as_narrow_as_the_least_demanding(changes: Changes) -> None:
    """Uses the narrowest hint of all resources as the target for affinities."""

    def target(lists: Any) -> int:
        sizes = [hint.nodes.bit_count() for hints_ in lists for hint in hints_ if hint.nodes >= 0]
        return min(sizes, default=0)

    changes.around(Rules, "target", lambda rule, lists: target(lists))


# Huge pages


_MEMORY = "memory"
_PAGES = "hugepages-"


def _huge_pages(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets `change` replace the huge pages of each node."""

    def change_node(node: Any, machine: Any) -> Any:
        return msgspec.structs.replace(node, hugepages=tuple(change(node, machine)))

    _machine(changes, change_node)


@shape(StaticMemoryPolicy, "allocate")
def _allocated(
    change: Change, rule: Any, self: Any, state: Any, pod: Any, container: Any, affinity: Any
) -> Any:
    """Lets `change` replace the container or affinity to allocate for.

    `change` is called with the policy, state, pod and container, and may return None.
    """
    instead = change(self, state, pod, container)
    if isinstance(instead, TopologyHint):
        affinity = instead
    elif instead is not None:
        container = instead
    return rule(container=container, affinity=affinity)


def _asking(container: Any, keep: Callable[[str], bool]) -> Any:
    """Returns the container with some of its requests."""
    asked = {kind: text for kind, text in container.requests.items() if keep(kind)}
    return replace(container, requests=asked)


# Huge pages


@seeds("MEM-HUGE-002").around(StaticMemoryPolicy, "allocate")
def huge_pages_come_from_the_lowest_node_that_has_them(
    rule: Any, state: Any, pod: Any, container: Any
) -> Any:
    """Allocates huge pages from the lowest node, regardless of the affinity."""
    kinds = {kind for kind in container.requests if kind.startswith(_PAGES)}
    new = state.of(pod.uid, container.name) is None
    if not new or not kinds or _MEMORY not in container.requests or container.init:
        return rule()
    memory = _asking(container, lambda kind: kind == _MEMORY)
    after = rule(container=memory)
    first = after.of(pod.uid, container.name)
    if first is None:
        return after
    pages = _asking(container, kinds.__contains__)
    before = replace(after, entries=state.entries)
    final = rule(state=before, container=pages, affinity=NO_AFFINITY)
    both = (*(final.of(pod.uid, container.name) or ()), *first)
    return final.with_blocks(pod.uid, container.name, both)


def _page(kind: str) -> int:
    return quantity.value(kind.removeprefix(_PAGES))


def _free_pages(changes: Changes, more: Callable[[str], int]) -> None:
    """Changes the number of free huge pages on nodes that have any."""

    def shift_free_pages(nodes: Any) -> Any:
        found = {}
        for node, memory in nodes.items():
            tables = {
                kind: table._replace(free=max(0, table.free + more(kind)))
                if kind.startswith(_PAGES) and table.allocatable
                else table
                for kind, table in memory.tables.items()
            }
            found[node] = replace(memory, tables=tables)
        return found

    def elsewhere(rule: Any, memory_state: Any, *rest: Any) -> Any:
        return rule(replace(memory_state, nodes=shift_free_pages(memory_state.nodes)), *rest)

    changes.around(MemoryState, "demand", elsewhere)
    changes.around(policies, "satisfies", elsewhere)


@seeds("MEM-HUGE-003").of(_free_pages, lambda kind: -_page(kind))
def the_last_huge_page_is_kept_back() -> None:
    """Never allocates the last huge page."""


@seeds("MEM-HUGE-003").of(_free_pages, _page)
def one_huge_page_too_many_is_handed_out() -> None:
    """Allocates one more huge page than there is."""


def _looking_at(changes: Changes, looked_at: Callable[[Any], Any]) -> None:
    """Considers only the memory types that `looked_at` returns."""

    def demand(rule: Any, self: Any, amounts: Any) -> Any:
        known = all(kind in memory.tables for memory in self.nodes.values() for kind in amounts)
        fewer = looked_at(amounts) if known else amounts
        return rule(amounts=fewer or amounts)

    changes.around(MemoryState, "demand", demand)
    changes.around(
        policies, "satisfies", lambda rule, amounts: rule(amounts=looked_at(amounts) or amounts)
    )


@seeds("MEM-HUGE-004").by(_looking_at)
def nodes_need_enough_huge_pages_and_not_enough_memory(amounts: Any) -> Any:
    """Considers only huge pages if a container requests any."""
    return {kind: size for kind, size in amounts.items() if kind.startswith(_PAGES)}


def _most(policy: Any, kind: str) -> int:
    """Returns the most memory of a type that any node has when empty."""
    tables = [memory.tables for memory in policy.empty.values()]
    return max((own[kind].allocatable for own in tables if kind in own), default=0)


def _spans(policy: Any, container: Any) -> bool:
    """Returns whether a container requests more huge pages than any node has."""
    return any(
        kind.startswith(_PAGES) and quantity.value(text) > _most(policy, kind)
        for kind, text in container.requests.items()
    )


@seeds("MEM-HUGE-005").by(_allocated)
def huge_pages_beyond_one_node_come_from_all_nodes(
    policy: Any, memory_state: Any, pod: Any, container: Any
) -> Any:
    """Uses all nodes for huge pages that don't fit on a single node."""
    every = sum(1 << node for node in policy.empty)
    new = memory_state.of(pod.uid, container.name) is None
    return TopologyHint(every, preferred=False) if new and _spans(policy, container) else None


def _leaking(before: MemoryState, after: MemoryState, leaks: Callable[[str], bool]) -> MemoryState:
    """Returns `after`, with the memory types selected by `leaks` as in `before`."""
    nodes = {
        node: replace(
            memory,
            tables={
                kind: before.nodes[node].tables[kind] if leaks(kind) else table
                for kind, table in memory.tables.items()
            },
        )
        for node, memory in after.nodes.items()
    }
    return replace(after, nodes=nodes)


def _leaks_pages(kind: str) -> bool:
    return kind.startswith(_PAGES)


@seeds("MEM-HUGE-006").around(StartedNode, "admit")
def huge_pages_of_rejected_pods_stay_reserved(rule: Any, self: Any, args: Any) -> Any:
    """Leaks the huge pages of rejected pods."""
    uid = args.pod["metadata"]["uid"]
    try:
        return rule()
    except AdmissionError:
        held = after = self.memory.state
        for name in held.entries.get(uid, {}):
            after = after.release(uid, name)
        if after is not held:
            self.memory.state = _leaking(held, after, _leaks_pages)
            self.memory.save()
        raise


def _skip_unknown_sizes(kinds: Callable[[Any, str], bool]) -> Callable[[Any, Any, Any, Any], Any]:
    """Ignores requests for huge pages of unknown sizes."""

    def serve(policy: Any, _memory_state: Any, _pod: Any, container: Any) -> Any:
        return _asking(container, lambda kind: not kind.startswith(_PAGES) or kinds(policy, kind))

    return serve


@seeds("MEM-HUGE-007")
def huge_pages_of_unknown_sizes_are_not_served(changes: Changes) -> None:
    """Admits containers that request unknown page sizes, but allocates no such pages."""
    _allocated(
        changes,
        _skip_unknown_sizes(
            lambda policy, kind: any(kind in own.tables for own in policy.empty.values())
        ),
    )


@seeds("MEM-HUGE-008").by(_huge_pages)
def page_sizes_without_pages_are_no_memory_type(node: Any, machine: Any) -> Any:
    """Ignores page sizes of which no node has pages."""
    used = {
        pool.page_size for one in machine.topology for pool in one.hugepages or () if pool.num_pages
    }
    return [pool for pool in node.hugepages or () if pool.page_size in used]


def _app_kinds(pod: Any) -> set[str]:
    return {
        kind for container in pod.containers if not container.init for kind in container.requests
    }


@seeds("MEM-HUGE-009").around(hints, "for_container")
def huge_pages_of_init_containers_are_not_hinted_in_scope_container(
    rule: Any, pod: Any, container: Any
) -> Any:
    """Returns no hints for memory types that only init containers request."""
    return rule(container=_asking(container, _app_kinds(pod).__contains__))


# Pinning


@shape(requests, "container_amounts")
def _part(change: Change, rule: Any, pod: Any, container: Any) -> Any:
    """Lets `change` override a container's amounts, given its pod."""
    return change(pod, container, rule())


@shape(requests, "container_amounts")
def _change_request(change: Callable[[Any], Any], rule: Any, container: Any) -> Any:
    """Lets `change` override the memory that containers request."""
    asked = container.requests
    if _MEMORY in asked:
        asked = {**asked, _MEMORY: change(asked[_MEMORY])}
    return rule(container=replace(container, requests=asked))


def _serve_also(changes: Changes, also: Callable[[Any], bool]) -> None:
    """Also pins the memory of pods for which `also` is true."""
    changes.around(policies, "is_served", lambda rule, pod: rule() or also(pod))


@shape(policies, "make_static")
def _machine(change: Callable[[Any, Any], Any], rule: Any, machine: Any) -> Any:
    """Lets `change` replace the NUMA nodes of the machine."""
    nodes = tuple(change(node, machine) for node in machine.topology or ())
    return rule(machine=msgspec.structs.replace(machine, topology=nodes))


# Which containers get memory, and how much


@seeds("MEM-STATIC-001").of(
    _part, lambda pod, container, amounts: {} if container.runs_to_completion else amounts
)
def init_containers_get_no_memory() -> None:
    """Doesn't pin the memory of init containers."""


@seeds("MEM-STATIC-001").of(
    _part, lambda pod, container, amounts: {} if container.sidecar else amounts
)
def sidecars_get_no_memory() -> None:
    """Doesn't pin the memory of sidecars."""


@seeds("MEM-STATIC-001").by(_part)
def only_the_first_app_container_gets_memory(pod: Any, container: Any, amounts: Any) -> Any:
    """Pins memory only for the first app container."""
    first = next((one.name for one in pod.containers if not one.init), None)
    return amounts if container.init or container.name == first else {}


@seeds("MEM-STATIC-002")
def burstable_pods_whose_memory_is_limited_get_memory(changes: Changes) -> None:
    """Pins the memory of Burstable pods whose memory limits equal their requests."""

    def is_limited(container: Any) -> bool:
        asked, most = container.requests.get(_MEMORY, 0), container.limits.get(_MEMORY, 0)
        return quantity.parse(asked) == quantity.parse(most) != 0

    _serve_also(
        changes,
        lambda pod: (
            pod.qos == "Burstable"
            and not pod.shared_pool
            and pod.budget is None
            and all(map(is_limited, pod.containers))
        ),
    )


@seeds("MEM-STATIC-002").of(
    _serve_also, lambda pod: pod.qos == "BestEffort" and not pod.shared_pool
)
def best_effort_pods_get_huge_pages() -> None:
    """Pins the huge pages of BestEffort pods."""


@seeds("MEM-STATIC-005").by(_serve_also)
def requests_and_limits_of_a_pod_are_compared_in_sum(pod: Any) -> Any:
    """Compares sums of requests and limits when computing the QoS class."""
    return (
        pod.budget is None
        and not pod.shared_pool
        and ClassBySums.qos_class(pod.containers) == "Guaranteed"
    )


@seeds("MEM-STATIC-007").by(_change_request)
def fractions_of_bytes_are_rounded_up(text: Any) -> Any:
    """Rounds fractions of bytes up."""
    return text if quantity.parse(text).denominator == 1 else str(quantity.value(text))


# Choice of nodes


def _singles(demand: Any) -> list[int]:
    return [1 << node for node in demand.nodes if demand.met_by(1 << node)]


def _free(demand: Any, nodes: int) -> int:
    return sum(need.free_on(nodes) for need in demand.needs)


@seeds("MEM-STATIC-008").by(_narrowest)
def memory_comes_from_the_node_with_least_free(demand: Any, hint: Any, containing: int) -> Any:
    """Uses the node with the least free memory."""
    if containing or hint is None or hint.nodes.bit_count() != 1:
        return hint
    return TopologyHint(
        min(_singles(demand), key=lambda nodes: (_free(demand, nodes), nodes)), hint.preferred
    )


@seeds("MEM-STATIC-009").by(_narrowest)
def pods_without_an_affinity_must_fit_one_node(demand: Any, hint: Any, containing: int) -> Any:
    """Rejects pods without affinity if they don't fit on a single node."""
    return hint if containing or hint is None or hint.nodes.bit_count() == 1 else None


@seeds("MEM-STATIC-010").by(_machine)
def nodes_without_memory_have_their_share_of_all(node: Any, machine: Any) -> Any:
    """Assumes an equal share of memory for nodes without memory."""
    share = machine.memory_capacity // len(machine.topology)
    return msgspec.structs.replace(node, memory=node.memory or share)


@seeds("MEM-STATIC-011").by(_machine)
def nodes_without_cpus_have_no_memory(node: Any, _: Any) -> Any:
    """Ignores the memory of nodes without CPUs."""
    return node if node.cores else msgspec.structs.replace(node, memory=0, hugepages=())


# Readmission


@seeds("MEM-STATIC-012").around(StaticMemoryPolicy, "allocate")
def pods_admitted_again_are_placed_anew(rule: Any, state: Any, pod: Any, container: Any) -> Any:
    """Reallocates memory on readmission."""
    if policies.is_served(pod) and not container.init:
        state = state.release(pod.uid, container.name)
    return rule(state=state)


@seeds("MEM-STATIC-014").after(StaticMemoryPolicy, "allocate")
def containers_that_ask_for_nothing_have_an_entry(
    after: Any, self: Any, pod: Any, container: Any
) -> Any:
    """Writes entries for containers that request nothing."""
    if policies.is_served(pod) and not self.requests_memory(pod, container):
        after = after.with_blocks(pod.uid, container.name, ())
    return after


# Removal


def _forget_container(memory_state: MemoryState, uid: str, name: str) -> MemoryState:
    """Forgets a container without releasing its memory."""
    left = {other: had for other, had in memory_state.entries.get(uid, {}).items() if other != name}
    entries = {**memory_state.entries, uid: left}
    if not left:
        del entries[uid]
    return replace(memory_state, entries=entries)


@seeds("MEM-REMOVE-001").around(state, "give_back")
def removed_pods_keep_memory_under_1_mebibyte(rule: Any, nodes: Any, node: int, kind: str) -> int:
    """Leaks less than 1 MiB of removed pods."""
    before = nodes[node].tables[kind]
    given: int = rule()
    freed = nodes[node].tables[kind].free - before.free
    tables = {**nodes[node].tables, kind: before.take(-(freed >> 20 << 20))}
    nodes[node] = replace(nodes[node], tables=tables)
    return given


@seeds("MEM-REMOVE-002").around(StartedNode, "remove")
def ended_sidecars_keep_their_memory(rule: Any, self: Any, args: Any) -> Any:
    """Keeps a sidecar's memory after it has ended."""
    held = self.memory.state
    pod = self.pods.get(args.uid)
    answer = rule()
    if args.container is not None and pod and pod.container(args.container).sidecar:
        self.memory.state = held
        self.memory.save()
    return answer


@shape(StartedNode, "admit")
def _when_rejected(leaks: Change, rule: Any, self: Any, args: Any) -> Any:
    """Leaks the memory of rejected pods if `leaks` is true for the error."""
    uid = args.pod["metadata"]["uid"]
    try:
        return rule()
    except AdmissionError as error:
        if leaks(error) and uid not in self.memory.state.pods:
            for name in tuple(self.memory.state.entries.get(uid, {})):
                self.memory.state = _forget_container(self.memory.state, uid, name)
            self.memory.save()
        raise


@seeds("MEM-REMOVE-003").of(_when_rejected, lambda error: error.reason == "TopologyAffinityError")
def pods_rejected_for_their_affinity_leave_memory_reserved() -> None:
    """Leaks the memory of pods rejected with TopologyAffinityError."""


@seeds("MEM-REMOVE-003").by(_when_rejected)
def pods_rejected_by_other_managers_leave_memory_reserved(error: AdmissionError) -> Any:
    """Leaks the memory of pods that other managers reject."""
    return error.reason != "TopologyAffinityError" and "memorymanager" not in str(error)
