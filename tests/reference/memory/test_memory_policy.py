"""The Memory Manager's static policy, by the rules of its documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import pods
from builders.machines import of_memory, with_node
from numaproof.protocol.machine import HugePages, MachineInfo, Node
from numaproof.reference.deviations import releases
from numaproof.reference.errors import AllocationError, NotBuiltError
from numaproof.reference.memory import hints, policy
from numaproof.reference.memory.state import Block, Blocks, MemoryState
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.topology.hints import NO_AFFINITY, TopologyHint

if TYPE_CHECKING:
    from numaproof.reference.pods.pod import Pod

GI = 1 << 30
TWO = of_memory(8 * GI, 8 * GI, hugepages=(HugePages(2048, 512),))
SYSTEM = {0: {"memory": GI}}


def static(machine: MachineInfo = TWO, *, documented: bool = False) -> policy.StaticMemoryPolicy:
    release = releases.release(None, documented=documented)
    return policy.make_static(machine, SYSTEM, release.rule(policy.StaticMemoryPolicy))


def pod(
    uid: str,
    *apps: str | dict[str, str],
    init: tuple[str | dict[str, str], ...] = (),
    sidecars: tuple[str, ...] = (),
) -> Pod:
    """A Guaranteed pod of containers with these amounts of memory; sidecars are its `init0`, ..."""

    def resources(memory: str | dict[str, str]) -> dict[str, Any]:
        return pods.guaranteed(
            {"cpu": "100m", **({"memory": memory} if isinstance(memory, str) else memory)}
        )

    first = [*(pods.Sidecar(resources(one)) for one in sidecars), *map(resources, init)]
    return read_pod(pods.numbered(uid, map(resources, apps), first))


def admitted(static_policy: policy.StaticMemoryPolicy, *wanted: Pod) -> MemoryState:
    state = static_policy.restore(MemoryState())
    for one in wanted:
        for container in one.containers:
            state = static_policy.allocate(state, one, container, NO_AFFINITY)
    return state


def test_huge_pages_and_the_reservation_are_not_allocatable_memory() -> None:
    assert static().allocatable == (
        Block(1, "hugepages-2Mi", GI),
        Block(2, "hugepages-2Mi", GI),
        Block(1, "memory", 6 * GI),
        Block(2, "memory", 7 * GI),
    )


def test_a_request_that_fits_takes_the_lowest_single_node() -> None:
    state = admitted(static(), pod("a", "2Gi"))
    assert state.of("a", "app0") == (Block(1, "memory", 2 * GI),)
    assert state.nodes[0].tables["memory"].free == 4 * GI


def test_a_node_of_a_group_is_not_used_alone_by_default() -> None:
    state = admitted(static(), pod("a", "9Gi"), pod("b", "1Gi"))
    assert state.of("b", "app0") == (Block(3, "memory", GI),)


def test_amounts_that_are_no_integer_to_the_api_machinery_are_refused() -> None:
    with pytest.raises(AllocationError, match="failed to represent quantity as int64"):
        admitted(static(), pod("a", "1.5Gi"))


def test_hints_for_what_is_allocated_are_where_it_is() -> None:
    static_policy, one = static(), pod("a", "2Gi")
    state = admitted(static_policy, one)
    there = {"memory": (TopologyHint(1, preferred=True),)}
    assert hints.for_container(static_policy, state, one, one.containers[0]) == there
    assert hints.for_pod(static_policy, state, one) == there


def test_huge_pages_that_no_node_has_are_refused() -> None:
    with pytest.raises(AllocationError, match="no NUMA nodes"):
        admitted(static(), pod("a", {"memory": "1Gi", "hugepages-1Gi": "1Gi"}))


def test_memory_of_a_node_with_a_negative_id_is_not_managed() -> None:
    machine = MachineInfo(memory_capacity=GI, topology=(Node(-1, GI), Node(0, GI)))
    with pytest.raises(NotBuiltError, match="negative ids"):
        static(machine)


def test_a_restored_state_is_kept_where_it_fits_the_machine() -> None:
    static_policy = static()
    state = admitted(static_policy, pod("a", "9Gi"), pod("b", "1Gi"))
    assert static_policy.restore(state) is state


@pytest.mark.parametrize(
    ("nodes", "entries", "message"),
    [
        (False, {"a": {"c": ()}}, "machine state can not be empty"),
        (True, {"a": {"c": (Block(4, "memory", GI),)}}, "NUMA that does not exist"),
        (True, {"a": {"c": (Block(1, "hugepages-1Gi", GI),)}}, "resource that does not exist"),
        (True, {"a": {"c": (Block(1, "memory", GI),)}}, "different from the real one"),
    ],
)
def test_a_restored_state_that_does_not_fit_the_machine_is_refused(
    entries: dict[str, dict[str, Blocks]], message: str, *, nodes: bool
) -> None:
    static_policy = static()
    state = MemoryState(static_policy.empty if nodes else {}, entries)
    with pytest.raises(policy.RestoreError, match=message):
        static_policy.restore(state)


def test_a_machine_that_lost_a_page_is_refused() -> None:
    state = admitted(static(), pod("a", "1Gi"))
    smaller = with_node(TWO, 1, memory=8 * GI - 4096)
    with pytest.raises(policy.RestoreError, match="different from the real one"):
        static(smaller).restore(state)
