"""Violators of the requirements of huge pages and of freed memory, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import hints
from numaproof.reference.memory import policy as policies
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import NO_AFFINITY, TopologyHint
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-static")

_MEMORY = "memory"
_PAGES = "hugepages-"


def _machine(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets the policy see other huge pages; `change` is given each node and the machine."""

    def made(original: Any, machine: Any, *rest: Any) -> Any:
        nodes = tuple(
            msgspec.structs.replace(node, hugepages=tuple(change(node, machine)))
            for node in machine.topology or ()
        )
        return original(msgspec.structs.replace(machine, topology=nodes), *rest)

    changes.around(policies, "make_static", made)


def _allocated(changes: Changes, change: Callable[[Any, Any, Any, Any], Any]) -> None:
    """Lets containers be served otherwise; `change` is given the policy, state, pod and container.

    It says which container, or which affinity, to serve instead; None for no other.
    """

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        instead = change(self, held, pod, container)
        if isinstance(instead, TopologyHint):
            affinity = instead
        elif instead is not None:
            container = instead
        return original(self, held, pod, container, affinity)

    changes.around(StaticMemoryPolicy, "allocate", allocate)


def _asking(container: Any, keep: Callable[[str], bool]) -> Any:
    """The container with some of its requests."""
    asked = {kind: text for kind, text in container.requests.items() if keep(kind)}
    return dataclasses.replace(container, requests=asked)


# Huge pages


@seeds("MEM-HUGE-002")
def huge_pages_come_from_the_lowest_node_that_has_them(changes: Changes) -> None:
    """A plausible author allocates one memory type after the other, and binds memory alone."""

    def allocate(
        original: Any, self: Any, held: Any, pod: Any, container: Any, affinity: Any
    ) -> Any:
        kinds = {kind for kind in container.requests if kind.startswith(_PAGES)}
        new = held.of(pod.uid, container.name) is None
        if not new or not kinds or _MEMORY not in container.requests or container.init:
            return original(self, held, pod, container, affinity)
        memory = _asking(container, lambda kind: kind == _MEMORY)
        after = original(self, held, pod, memory, affinity)
        first = after.of(pod.uid, container.name)
        if first is None:
            return after
        pages = _asking(container, kinds.__contains__)
        before = dataclasses.replace(after, entries=held.entries)
        final = original(self, before, pod, pages, NO_AFFINITY)
        both = (*(final.of(pod.uid, container.name) or ()), *first)
        return final.with_blocks(pod.uid, container.name, both)

    changes.around(StaticMemoryPolicy, "allocate", allocate)


def _page(kind: str) -> int:
    return quantity.value(kind.removeprefix(_PAGES))


def _free_pages(changes: Changes, more: Callable[[str], int]) -> None:
    """Lets the manager find other amounts of huge pages free on each node where some are free."""

    def shifted(nodes: Any) -> Any:
        found = {}
        for node, memory in nodes.items():
            tables = {
                kind: table._replace(free=max(0, table.free + more(kind)))
                if kind.startswith(_PAGES) and table.allocatable
                else table
                for kind, table in memory.tables.items()
            }
            found[node] = dataclasses.replace(memory, tables=tables)
        return found

    def elsewhere(original: Any, held: Any, *rest: Any) -> Any:
        return original(dataclasses.replace(held, nodes=shifted(held.nodes)), *rest)

    changes.around(MemoryState, "demand", elsewhere)
    changes.around(policies, "satisfies", elsewhere)


@seeds("MEM-HUGE-003")
def the_last_huge_page_is_kept_back(changes: Changes) -> None:
    """A plausible author asks for more free pages than are requested, not for as many."""
    _free_pages(changes, lambda kind: -_page(kind))


@seeds("MEM-HUGE-003")
def one_huge_page_too_many_is_handed_out(changes: Changes) -> None:
    """A plausible author is content if any page is left."""
    _free_pages(changes, _page)


def _looking_at(changes: Changes, looked_at: Callable[[Any], Any]) -> None:
    """Lets the manager look at some of the memory types that are asked for."""

    def demand(original: Any, held: Any, uid: Any, amounts: Any) -> Any:
        known = all(kind in memory.tables for memory in held.nodes.values() for kind in amounts)
        fewer = looked_at(amounts) if known else amounts
        return original(held, uid, fewer or amounts)

    changes.around(MemoryState, "demand", demand)
    changes.around(
        policies,
        "satisfies",
        lambda original, held, nodes, amounts: original(held, nodes, looked_at(amounts) or amounts),
    )


@seeds("MEM-HUGE-004")
def nodes_need_enough_huge_pages_and_not_enough_memory(changes: Changes) -> None:
    """A plausible author goes where the huge pages are, of which there are few."""
    _looking_at(
        changes,
        lambda amounts: {kind: size for kind, size in amounts.items() if kind.startswith(_PAGES)},
    )


def _most(policy: Any, kind: str) -> int:
    """The most of a memory type that any node has when it is empty."""
    tables = [memory.tables for memory in policy.empty.values()]
    return max((own[kind].allocatable for own in tables if kind in own), default=0)


def _spans(policy: Any, container: Any) -> bool:
    """Whether no node has the huge pages that a container asks for."""
    return any(
        kind.startswith(_PAGES) and quantity.value(text) > _most(policy, kind)
        for kind, text in container.requests.items()
    )


@seeds("MEM-HUGE-005")
def huge_pages_beyond_one_node_come_from_all_nodes(changes: Changes) -> None:
    """A plausible author knows one node, or all of them."""

    def everywhere(policy: Any, held: Any, pod: Any, container: Any) -> Any:
        every = sum(1 << node for node in policy.empty)
        new = held.of(pod.uid, container.name) is None
        return TopologyHint(every, preferred=False) if new and _spans(policy, container) else None

    _allocated(changes, everywhere)


def _leaking(before: MemoryState, after: MemoryState, leaks: Callable[[str], bool]) -> MemoryState:
    """The state `after` something was freed, in which memory of some types is as before."""
    nodes = {
        node: dataclasses.replace(
            memory,
            tables={
                kind: before.nodes[node].tables[kind] if leaks(kind) else table
                for kind, table in memory.tables.items()
            },
        )
        for node, memory in after.nodes.items()
    }
    return dataclasses.replace(after, nodes=nodes)


def _leaks_pages(kind: str) -> bool:
    return kind.startswith(_PAGES)


@seeds("MEM-HUGE-006")
def huge_pages_of_rejected_pods_stay_reserved(changes: Changes) -> None:
    """A plausible author undoes an allocation by hand, and forgets the other types."""

    def admit(original: Any, self: Any, args: Any) -> Any:
        uid = args.pod["metadata"]["uid"]
        try:
            return original(self, args)
        except AdmissionError:
            held = after = self.memory.state
            for name in held.entries.get(uid, {}):
                after = after.release(uid, name)
            if after is not held:
                self.memory.state = _leaking(held, after, _leaks_pages)
                self.memory.save()
            raise

    changes.around(StartedNode, "admit", admit)


def _known(kinds: Callable[[Any, str], bool]) -> Callable[[Any, Any, Any, Any], Any]:
    """Serves a container as if it did not ask for huge pages of sizes that are not known."""

    def serve(policy: Any, _held: Any, _pod: Any, container: Any) -> Any:
        return _asking(container, lambda kind: not kind.startswith(_PAGES) or kinds(policy, kind))

    return serve


@seeds("MEM-HUGE-007")
def huge_pages_of_unknown_sizes_are_not_served(changes: Changes) -> None:
    """A plausible author passes over what is not in the tables of the nodes."""
    _allocated(
        changes,
        _known(lambda policy, kind: any(kind in own.tables for own in policy.empty.values())),
    )


@seeds("MEM-HUGE-008")
def page_sizes_without_pages_are_no_memory_type(changes: Changes) -> None:
    """A plausible author reads the sizes of which there are pages."""

    def pools(node: Any, machine: Any) -> Any:
        used = {
            pool.page_size
            for one in machine.topology
            for pool in one.hugepages or ()
            if pool.num_pages
        }
        return [pool for pool in node.hugepages or () if pool.page_size in used]

    _machine(changes, pools)


def _app_kinds(pod: Any) -> set[str]:
    return {
        kind for container in pod.containers if not container.init for kind in container.requests
    }


@seeds("MEM-HUGE-009")
def huge_pages_of_init_containers_are_not_hinted_in_scope_container(changes: Changes) -> None:
    """A plausible author asks for hints of the types that the pod will have when it runs."""
    changes.around(
        hints,
        "for_container",
        lambda original, policy, held, pod, container: original(
            policy, held, pod, _asking(container, _app_kinds(pod).__contains__)
        ),
    )
