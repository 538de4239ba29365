"""The Memory Manager's static policy, by the rules of its documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from builders import pods
from builders.machines import of_memory, with_node
from numaproof.protocol.machine import HugePages, MachineInfo, Node
from numaproof.reference.deviations import releases
from numaproof.reference.errors import AllocationError, NotBuiltError
from numaproof.reference.memory import hints, policy
from numaproof.reference.memory.state import Block, Blocks, MemoryState, ReusableMemory
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


def test_a_request_beyond_one_node_takes_a_group_of_nodes() -> None:
    state = admitted(static(), pod("a", "9Gi"))
    assert state.of("a", "app0") == (Block(3, "memory", 9 * GI),)
    assert [memory.cells for memory in state.nodes.values()] == [3, 3]


def test_a_node_used_alone_joins_no_group() -> None:
    with pytest.raises(AllocationError, match="no NUMA nodes with enough memory"):
        admitted(static(), pod("a", "1Gi"), pod("b", "9Gi"))


def test_a_node_of_a_group_is_not_used_alone_by_default() -> None:
    state = admitted(static(), pod("a", "9Gi"), pod("b", "1Gi"))
    assert state.of("b", "app0") == (Block(3, "memory", GI),)


def test_a_kubelet_takes_a_node_out_of_its_group_when_told_to_and_the_documents_forbid_it() -> None:
    group, single = pod("a", "9Gi"), pod("b", "1Gi")
    # Node 0 is used up by the group, node 1 is not.
    hint = TopologyHint(2, preferred=True)
    kubelet = static()
    state = admitted(kubelet, group)
    state = kubelet.allocate(state, single, single.containers[0], hint)
    assert [memory.cells for memory in state.nodes.values()] == [3, 2]
    documented = static(documented=True)
    state = admitted(documented, group)
    with pytest.raises(AllocationError, match="violates NUMA node allocation"):
        documented.allocate(state, single, single.containers[0], hint)


def test_a_hint_that_suffices_to_the_last_byte_is_not_extended() -> None:
    static_policy = static()
    state = admitted(static_policy, pod("a", "9Gi"))
    rest = state.nodes[1].tables["memory"].free
    single = pod("b", str(rest))
    hint = TopologyHint(2, preferred=False)
    state = static_policy.allocate(state, single, single.containers[0], hint)
    assert state.of("b", "app0") == (Block(2, "memory", rest),)


def test_a_hint_that_does_not_suffice_is_extended() -> None:
    static_policy, one = static(), pod("a", "9Gi")
    state = static_policy.restore(MemoryState())
    hint = TopologyHint(2, preferred=False)
    state = static_policy.allocate(state, one, one.containers[0], hint)
    assert state.of("a", "app0") == (Block(3, "memory", 9 * GI),)


def test_app_containers_take_over_what_init_containers_had_and_sidecars_keep_theirs() -> None:
    state = admitted(static(), pod("a", "2Gi", init=("3Gi",), sidecars=("1Gi",)))
    assert state.of("a", "init0") == (Block(1, "memory", GI),)
    assert state.of("a", "init0") == (Block(1, "memory", GI),)
    assert state.of("a", "app0") == (Block(1, "memory", 2 * GI),)
    assert state.nodes[0].tables["memory"].reserved == 4 * GI


def test_what_is_released_leaves_the_machine_as_it_was() -> None:
    static_policy = static()
    empty = static_policy.restore(MemoryState())
    state = admitted(static_policy, pod("a", "9Gi", init=("12Gi",)), pod("b", {"memory": "1Gi"}))
    for uid, name, _ in tuple(state):
        state = state.release(uid, name)
    assert replace(state, reuse=empty.reuse) == empty
    assert state.release("a", "app0") is state


def test_amounts_that_are_no_integer_to_the_api_machinery_are_refused() -> None:
    with pytest.raises(AllocationError, match="failed to represent quantity as int64"):
        admitted(static(), pod("a", "1.5Gi"))


def test_burstable_pods_get_no_memory() -> None:
    burstable = replace(pod("a", "1Gi"), qos="Burstable")
    state = admitted(static(), burstable)
    assert state.of("a", "app0") is None
    assert hints.for_pod(static(), state, burstable) == {}


def test_hints_for_what_is_allocated_are_where_it_is() -> None:
    static_policy, one = static(), pod("a", "2Gi")
    state = admitted(static_policy, one)
    there = {"memory": (TopologyHint(1, preferred=True),)}
    assert hints.for_container(static_policy, state, one, one.containers[0]) == there
    assert hints.for_pod(static_policy, state, one) == there


def test_no_hint_is_no_resource() -> None:
    static_policy, large = static(), pod("a", "99Gi")
    state = static_policy.restore(MemoryState())
    assert hints.for_pod(static_policy, state, large) == {}


def test_huge_pages_that_no_node_has_are_refused() -> None:
    with pytest.raises(AllocationError, match="no NUMA nodes"):
        admitted(static(), pod("a", {"memory": "1Gi", "hugepages-1Gi": "1Gi"}))


@pytest.mark.parametrize("documented", [False, True])
def test_an_init_container_that_has_ended_is_served_again_by_kubelets_alone(
    *, documented: bool
) -> None:
    chosen = static(documented=documented)
    wanted = pod("a", "1Gi", init=("1Gi",))
    state = admitted(chosen, wanted)
    ended = replace(state.release("a", "init0"), reuse=ReusableMemory())
    init = wanted.containers[0]
    assert bool(hints.for_container(chosen, ended, wanted, init)) is not documented
    after = chosen.allocate(ended, wanted, init, NO_AFFINITY)
    assert (after == ended) is documented


@pytest.mark.parametrize(
    ("documented", "kinds"), [(False, ["memory"]), (True, ["hugepages-2Mi", "memory"])]
)
def test_what_only_an_init_container_asks_for_is_hinted_as_documented(
    *, documented: bool, kinds: list[str]
) -> None:
    chosen = static(documented=documented)
    pages = {"memory": "1Gi", "hugepages-2Mi": "1Gi"}
    state = admitted(chosen, pod("a", pages))
    found = hints.for_pod(chosen, state, pod("b", "1Gi", init=(pages,)))
    assert list(found) == kinds


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
