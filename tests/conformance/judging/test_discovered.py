"""Machines as those see them who see less than cAdvisor does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders.differences import parts
from builders.machines import regular
from numaproof.conformance.judging.discovered import difference, differing, seen_in
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.machine import Core, HugePages, MachineInfo, UncoreCache
from numaproof.protocol.messages import StartRefused

L3 = (UncoreCache(0, 1 << 20, "Unified", 3), UncoreCache(1, 1 << 20, "Unified", 3))
L1 = UncoreCache(0, 32768, "Data", 1)
POOL = HugePages(2048, 3)


def with_caches(*shared: int) -> MachineInfo:
    """Two nodes of four cores of two threads, which share level 3 caches as told."""
    machine = regular(nodes=2, cores=4, threads=2, sockets=2)
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    seen = [
        msgspec.structs.replace(core, uncore_caches=(L3[number],), caches=(L1,))
        for core, number in zip(cores, shared, strict=True)
    ]
    nodes = tuple(
        msgspec.structs.replace(node, cores=tuple(seen[4 * n : 4 * n + 4]), hugepages=(POOL,))
        for n, node in enumerate(machine.topology or ())
    )
    return msgspec.structs.replace(machine, topology=nodes)


MACHINE = with_caches(0, 0, 0, 0, 1, 1, 1, 1)


def node(number: int, **changes: Any) -> MachineInfo:
    """The machine with something else on a node."""
    nodes = [*(MACHINE.topology or ())]
    nodes[number] = msgspec.structs.replace(nodes[number], **changes)
    return msgspec.structs.replace(MACHINE, topology=tuple(nodes))


def core(**changes: Any) -> MachineInfo:
    """The machine with something else in the second core of its first node."""
    first, second, *others = (MACHINE.topology or ())[0].cores or ()
    return node(0, cores=(first, msgspec.structs.replace(second, **changes), *others))


CHANGES = {
    "num_cores": msgspec.structs.replace(MACHINE, num_cores=1),
    "num_physical_cores": msgspec.structs.replace(MACHINE, num_physical_cores=1),
    "num_sockets": msgspec.structs.replace(MACHINE, num_sockets=1),
    "memory_capacity": msgspec.structs.replace(MACHINE, memory_capacity=1),
    "hugepages": msgspec.structs.replace(MACHINE, hugepages=(POOL,)),
    "nodes": node(1, node_id=2),
    "node_memory": node(0, memory=1),
    "node_hugepages": node(0, hugepages=()),
    "distances": node(0, distances=(10, 99)),
    "core_ids": core(core_id=77),
    "socket_ids": core(socket_id=77),
    "caches": core(caches=(msgspec.structs.replace(L1, size=1),)),
    "uncore_caches": with_caches(0, 0, 0, 1, 1, 1, 1, 1),
    "node_caches": node(0, caches=(L3[0],)),
    "cache_ids": core(caches=(msgspec.structs.replace(L1, id=7),)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_is_seen_by_whoever_claims_it_and_by_nobody_else(name: str) -> None:
    beside = {"caches"} if name == "cache_ids" else set()
    found = difference(CHANGES[name], MACHINE, {name, *beside})
    assert found
    assert found.subject.startswith("caches" if beside else name)
    # What a node has is said of its id: whoever calls the node otherwise differs in all of it.
    of_nodes = {one for one in DISCOVERED if one.startswith("node")} | {"distances"}
    others = DISCOVERED.keys() - {name} - (of_nodes if name == "nodes" else set())
    assert difference(CHANGES[name], MACHINE, others) is None


WRONG = {
    **{name: {name} for name in CHANGES},
    "nodes": {"node_ids"},
    "cache_ids": {"caches"},
    "node_caches": {"untold_caches"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_is_named_by_what_it_is_in(name: str) -> None:
    assert differing(CHANGES[name], MACHINE) == WRONG[name]
    assert differing(CHANGES[name], MACHINE, {"num_cores"}) == WRONG[name] & {"num_cores"}
    assert differing(MACHINE, MACHINE) == set()


def test_a_cpu_too_many_or_too_few_is_no_difference_of_what_others_have() -> None:
    cores = (MACHINE.topology or ())[0].cores or ()
    more = Core(core_id=9, thread_ids=(99,), socket_id=7, uncore_caches=None, caches=(L1,))
    assert differing(node(0, cores=(*cores, more)), MACHINE) == {"extra_cpus"}
    bare = msgspec.structs.replace(MACHINE, topology=None)
    fields = ("nodes", "cores", "node_memory", "core_ids", "num_cores")
    assert differing(core(thread_ids=(1,)), MACHINE, fields) == {"missing_cpus"}
    assert differing(bare, MACHINE, ("num_cores", "num_sockets")) == set()


def test_a_core_split_in_two_is_a_difference_of_cores_alone() -> None:
    first, *others = (MACHINE.topology or ())[0].cores or ()
    halves = [msgspec.structs.replace(first, thread_ids=(cpu,)) for cpu in first.thread_ids or ()]
    assert differing(node(0, cores=(*halves, *others)), MACHINE) == {"cores"}


def test_a_cpu_on_another_node_is_a_difference_of_the_nodes() -> None:
    here, there = (one.cores or () for one in MACHINE.topology or ())
    nodes = [*(MACHINE.topology or ())]
    nodes[0] = msgspec.structs.replace(nodes[0], cores=here[1:])
    nodes[1] = msgspec.structs.replace(nodes[1], cores=(*there, here[0]))
    moved = msgspec.structs.replace(MACHINE, topology=tuple(nodes))
    assert differing(moved, MACHINE, ("nodes", "cores", "num_cores")) == {"nodes"}


def test_caches_that_should_not_be_told_are_a_difference_of_their_own() -> None:
    bare = core(caches=())
    assert differing(MACHINE, bare) == {"untold_caches"}
    assert differing(bare, MACHINE) == {"caches"}


def test_who_tells_no_cpus_tells_nothing_of_them() -> None:
    empty = msgspec.structs.replace(MACHINE, topology=())
    found = differing(empty, MACHINE, ("nodes", "cores", "caches", "node_memory", "num_cores"))
    assert found == {"nodes", "node_ids", "cores", "caches", "node_memory", "missing_cpus"}


def test_a_refusal_differs_in_nothing_of_a_machine() -> None:
    assert differing(StartRefused("discovery", "no"), MACHINE) == set()


def test_cores_are_known_by_their_threads() -> None:
    apart = regular(nodes=1, cores=16, threads=1)
    assert parts(difference(apart, MACHINE, {"cores"})) == ("cores of 0", "0,8", "0")
    assert difference(apart, MACHINE, {"num_cores"}) is None


def test_neither_the_order_nor_what_cores_and_caches_are_called_counts() -> None:
    named = UncoreCache(9, 1 << 20, "Unified", 3)
    nodes = [
        msgspec.structs.replace(
            one,
            cores=tuple(
                Core(
                    core_id=cpus[0] + 50,
                    thread_ids=tuple(reversed(cpus)),
                    socket_id=found.socket_id,
                    uncore_caches=(named if one.node_id else L3[0],),
                    caches=(L1,),
                )
                for found in reversed(one.cores or ())
                for cpus in [found.thread_ids or ()]
            ),
        )
        for one in reversed(MACHINE.topology or ())
    ]
    other = msgspec.structs.replace(MACHINE, topology=tuple(nodes))
    assert difference(other, MACHINE, DISCOVERED.keys() - {"core_ids", "cache_ids"}) is None


def test_a_core_with_cpus_of_another_is_not_hidden_by_it() -> None:
    found = difference(core(thread_ids=(0, 9)), MACHINE, {"cores"})
    assert parts(found) == ("cores of 0", "0,8", '"0,8 and 0,9"')


def test_what_a_case_expects_is_called_as_claims_are() -> None:
    core = {"core_id": 0, "cpus": "0", "caches": []}
    expected = {"num_cores": 1, "node_ids": [0], "nodes": {"0": {"cores": {"0": core}}}}
    assert seen_in(expected) == ("num_cores", "nodes", "cores", "core_ids", "caches")
    assert seen_in({"nodes": {"0": {"cores": {}}}}) == ()
