"""Explanations say what the reference does, of every admission."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import machines, pods
from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, Need, Supply
from numaproof.reference.topology.search.evaluation import listed
from numaproof.simulation import devices
from numaproof.simulation.admission import Question, Simulation, admit_all, begin
from numaproof.simulation.explanation import Allocation, ManagerHints, Merge, candidates
from numaproof.simulation.observation import observe
from numaproof.simulation.pods import DescribedPod

if TYPE_CHECKING:
    from numaproof.simulation.explanation import Explanation

NIC = "vendor.example/nic"
GIB = 1 << 30
MEMORY = {
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}
WHOLE = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}


def question(name: str, config: dict[str, Any], *given: str) -> Question:
    found = machines.discovered(name)
    all_of = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,1", **config}
    return Question(found, all_of, "1.36", devices=devices.read(given, found))


def pod(name: str, *limits: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> DescribedPod:
    def resources(each: dict[str, Any]) -> dict[str, Any]:
        return {"limits": {"memory": "1Gi", **each}}

    return DescribedPod(name, pods.numbered(name, map(resources, limits), map(resources, init)))


def ask(asked: Question, *pods: DescribedPod, explain_all: bool = False) -> Simulation:
    with tempfile.TemporaryDirectory() as folder:
        return admit_all(asked, pods, folder, explain_all=explain_all)


def why(asked: Question, *pods: DescribedPod) -> Explanation:
    """The explanation of the last pod, which must be refused."""
    last = ask(asked, *pods).pods[-1]
    assert last.refusal is not None
    assert last.explanation is not None
    return last.explanation


REQUESTS = st.lists(
    st.lists(
        st.fixed_dictionaries(
            {"cpu": st.sampled_from(["1", "2", "3", "8", "20", "38", "41", "1500m"])},
            optional={
                "memory": st.sampled_from(["1Gi", "50Gi", "100Gi"]),
                NIC: st.integers(0, 3),
            },
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(
    requests=REQUESTS,
    init=st.booleans(),
    policy=st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    scope=st.sampled_from(["container", "pod"]),
    memory=st.booleans(),
    whole=st.booleans(),
)
def test_every_refusal_is_explained_by_what_the_reference_did(
    requests: list[list[dict[str, Any]]],
    init: bool,  # noqa: FBT001 - drawn
    policy: str,
    scope: str,
    memory: bool,  # noqa: FBT001 - drawn
    whole: bool,  # noqa: FBT001 - drawn
) -> None:
    config = {
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        **(MEMORY if memory else {}),
        **(WHOLE if whole else {}),
    }
    asked = question("xeon-gold-6230-2s", config, f"{NIC}=2@0,2@1,1@0-1")
    pods = [
        pod(f"p{number}", *limits, init=tuple(limits[:1]) if init else ())
        for number, limits in enumerate(requests)
    ]
    for verdict in ask(asked, *pods, explain_all=True).pods:
        explanation = verdict.explanation
        assert explanation is not None
        if verdict.refusal is None:
            assert explanation.summary == "every manager can satisfy the request"
            continue
        *_, last = explanation.steps
        if verdict.refusal.reason == "TopologyAffinityError":
            assert isinstance(last, Merge)
            assert not last.admitted
        else:
            assert isinstance(last, Allocation)
            assert last.message == verdict.refusal.message
            assert last.text


@settings(max_examples=25, deadline=None)
@given(requests=REQUESTS, scope=st.sampled_from(["container", "pod"]))
def test_the_explanation_of_a_set_of_nodes_agrees_with_the_hints(
    requests: list[list[dict[str, Any]]], scope: str
) -> None:
    config = {**MEMORY, "topologyManagerPolicy": "best-effort", "topologyManagerScope": scope}
    asked = question("epyc-7763-2s-nps4", config, f"{NIC}=2@0,2@1,1@0-1")
    with tempfile.TemporaryDirectory() as folder:
        reference, _ = begin(asked, folder)
        for number, limits in enumerate(requests):
            node = reference.node
            assert node is not None
            manifest = pod(f"p{number}", *limits).manifest
            observed = observe(node, node.read_pod(manifest), node.setup.topology_policy)
            demands = [
                (tuple(hinted.resources), hints)
                for merged in observed.merges
                for hinted in merged.hints
                for hints in hinted.resources.values()
                if isinstance(hints, Demand)
            ]
            for names, demand in demands:
                check(demand, names[: len(demand.needs)])
            reference.call("admit", messages.AdmitArgs(manifest))


def check(demand: Demand, names: tuple[str, ...]) -> None:
    hints = {hint.nodes: hint.preferred for hint in listed(demand)}
    found = candidates(demand, names)
    assert len(found.told) <= 10
    for one in found.told:
        marks = {None: "impossible", True: "preferred", False: "possible"}
        assert one.mark == marks[hints.get(one.numa.mask)]
        assert one.text


def test_watching_leaves_the_node_as_it_is() -> None:
    asked = question("xeon-gold-6230-2s", {**MEMORY, "topologyManagerPolicy": "restricted"})
    with tempfile.TemporaryDirectory() as folder:
        reference, _ = begin(asked, folder)
        node = reference.node
        assert node is not None
        before = reference.call("state", messages.NoArgs())
        manifest = pod("p", {"cpu": 2}, init=({"cpu": 3},)).manifest
        assert observe(node, node.read_pod(manifest), node.setup.topology_policy).admitted
        assert reference.call("state", messages.NoArgs()) == before


# What is said


@pytest.mark.parametrize(
    ("config", "pods", "given", "told"),
    [
        (
            {"topologyManagerPolicy": "restricted"},
            [pod("a", {"cpu": 30}), pod("b", {"cpu": 30}), pod("c", {"cpu": 12})],
            (),
            (
                "container app0: no node can provide 12 CPUs: node 0: 8 CPUs free, 12 "
                "needed; node 1: 10 CPUs free, 12 needed"
            ),
        ),
        (
            {"topologyManagerPolicy": "single-numa-node"},
            [pod("a", {"cpu": 60})],
            (),
            (
                "container app0: even an empty machine needs 2 nodes for 60 CPUs, and single-"
                "numa-node admits one"
            ),
        ),
        (
            {"topologyManagerPolicy": "single-numa-node"},
            [pod("a", {"cpu": 36}), pod("b", {"cpu": 20, NIC: 1})],
            (f"{NIC}=1@0",),
            f"container app0: no nodes are preferred by all: {NIC} on node 0, cpu on node 1",
        ),
        (
            {"topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"},
            [pod("a", {NIC: 2}, {NIC: 2})],
            (f"{NIC}=3@0",),
            f"the pod as a whole: 4 {NIC} requested: 3 on this node, 0 held by containers, 3 free",
        ),
        (
            {},
            [pod("a", {"cpu": 38, NIC: 1}), pod("b", {"cpu": 2, NIC: 2})],
            (f"{NIC}=2@0",),
            f"container app0: 2 {NIC} requested: 2 on this node, 1 held by containers, 1 free",
        ),
        (
            {},
            [pod("a", {"cpu": 70}), pod("b", {"cpu": 9})],
            (),
            (
                "container app0: 9 CPUs requested, 8 free. Of 80 CPUs, reserved: 0-1; exclusive: "
                "a/app0 2-16,20-39,42-56,60-79."
            ),
        ),
        (
            WHOLE,
            [pod("a", {"cpu": 3})],
            (),
            (
                "container app0: full-pcpus-only assigns whole cores of 2 CPUs each: 3 is not a "
                "multiple of 2"
            ),
        ),
        (
            WHOLE,
            [pod("a", {"cpu": 70}), pod("b", {"cpu": 8})],
            (),
            (
                "container app0: full-pcpus-only assigns whole cores of 2 CPUs each: 8 "
                "requested, 6 free. CPUs that share a core with a reserved CPU do not count: "
                "40-41. Of 80 CPUs, reserved: 0-1; exclusive: a/app0 2-16,20-39,42-56,60-79."
            ),
        ),
        (
            MEMORY,
            [pod("a", {"cpu": 2, "memory": "1000Gi"})],
            (),
            (
                "container app0: no set of nodes can provide 1000 GiB of memory: nodes 0-1: "
                "189.7 GiB of memory free, 1000 GiB needed (189.7 GiB of memory in total)"
            ),
        ),
        (
            {**MEMORY, "topologyManagerPolicy": "best-effort"},
            [pod("a", {"cpu": 2, "memory": "100Gi"}), pod("b", {"cpu": 2, "memory": "94Gi"})],
            (),
            (
                "container app0: no set of nodes can provide 94 GiB of memory: node 0: 0 B of "
                "memory free, 94 GiB needed, node 0 is in use as part of the group of nodes 0-1; "
                "node 1: 89.7 GiB of memory free, 94 GiB needed, node 1 is in use as part of the "
                "group of nodes 0-1; nodes 0-1: 89.7 GiB of memory free, 94 GiB needed"
            ),
        ),
        (
            {**MEMORY, "topologyManagerPolicy": "best-effort", "topologyManagerScope": "pod"},
            [
                pod("a", {"cpu": 30, "memory": "60Gi"}),
                pod("b", {"cpu": 2, "memory": "40Gi"}, {"cpu": 2, "memory": "94Gi"}),
            ],
            (),
            (
                "container app0: the hints merge to node 0, which the Memory Manager cannot use: "
                "34 GiB of memory free, 40 GiB needed"
            ),
        ),
        (
            {**MEMORY, "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"},
            [pod("a", {"cpu": 50, "memory": "60Gi"}, init=({"cpu": 2, "memory": "150Gi"},))],
            (),
            (
                "container app0: the hints merge to nodes 0-1, which the Memory Manager cannot "
                "use: too little is free without what the pod's init containers used"
            ),
        ),
        (
            MEMORY,
            [pod("a", {"cpu": 2, "memory": "1.5Gi"})],
            (),
            "container app0: an amount is not a whole number of bytes to the API machinery",
        ),
    ],
)
def test_a_refusal_is_summed_up_in_a_sentence(
    config: dict[str, Any], pods: list[DescribedPod], given: tuple[str, ...], told: str
) -> None:
    assert why(question("xeon-gold-6230-2s", config, *given), *pods).summary == told


def test_advice_is_given_only_when_it_certainly_helps() -> None:
    small = "laptop-4c8t"
    assert why(question(small, WHOLE), pod("a", {"cpu": 3})).advice == ("request 2 or 4 CPUs",)
    assert why(question(small, WHOLE), pod("a", {"cpu": 1})).advice == ("request 2 CPUs",)
    assert why(question(small, {}), pod("a", {"cpu": 7})).advice == ("request at most 6 CPUs",)
    nothing = why(question(small, {"topologyManagerPolicy": "restricted"}), pod("a", {"cpu": 7}))
    assert nothing.advice == ()


def test_only_the_refused_containers_hints_are_shown() -> None:
    asked = question("laptop-4c8t", {"topologyManagerPolicy": "restricted"})
    steps = why(asked, pod("a", {"cpu": 2}, {"cpu": 5})).steps
    assert [type(one).__name__ for one in steps[:3]] == [
        "RequestedResources",
        "Merge",
        "RequestedResources",
    ]
    hints = [one for one in steps if isinstance(one, ManagerHints)]
    assert [one.text for one in hints if one.resource] == [
        "5 CPUs not available on any set of nodes"
    ]


@pytest.mark.parametrize(
    ("config", "limits", "told"),
    [
        (
            {"cpuManagerPolicy": "none"},
            {"cpu": 2},
            "CPU Manager: no preference: its policy is none",
        ),
        ({}, {"cpu": "1500m"}, "CPU Manager: no preference: 1500m is not a whole number of CPUs"),
        (MEMORY, {"cpu": 2, "memory": "1.5Gi"}, "Memory Manager: no preference: an amount is not"),
        ({}, {"cpu": 2, NIC: 1}, f"Device Manager {NIC}: no preference: its plugin reports no"),
        ({}, {"cpu": 2}, "Memory Manager: no preference: its policy is None"),
    ],
)
def test_a_manager_without_preference_says_why(
    config: dict[str, Any], limits: dict[str, Any], told: str
) -> None:
    asked = question("laptop-4c8t", {"topologyManagerPolicy": "best-effort", **config}, f"{NIC}=1")
    (verdict,) = ask(asked, pod("a", limits), explain_all=True).pods
    assert verdict.explanation is not None
    lines = [
        f"{one.manager}{f' {one.resource}' if one.resource else ''}: {one.text}"
        for one in verdict.explanation.steps
        if isinstance(one, ManagerHints)
    ]
    assert any(line.startswith(told) for line in lines), lines


def test_everything_that_is_lacking_is_listed() -> None:
    asked = question("laptop-4c8t", {"topologyManagerPolicy": "restricted"}, f"{NIC}=1@0")
    assert why(asked, pod("a", {"cpu": 7, NIC: 2})).summary == (
        f"container app0: 2 {NIC} requested: 1 on this node, 0 held by containers, 1 free; and "
        "no node can provide 7 CPUs: node 0: 6 CPUs free, 7 needed"
    )


def test_memory_of_all_types_has_hints_together() -> None:
    config = {**MEMORY, "topologyManagerPolicy": "restricted"}
    asked = question("hugepages-2s", config, f"{NIC}=1")
    limits = {"cpu": 2, "memory": "100Gi", "hugepages-1Gi": "1Gi", NIC: 1}
    explanation = why(asked, pod("a", limits))
    assert explanation.summary.endswith("cpu on 1 node, hugepages-1Gi on 2 nodes")
    both = [one for one in explanation.steps if getattr(one, "manager", "") == "Memory Manager"]
    texts = [one.text for one in both if isinstance(one, ManagerHints)]
    assert texts == [
        "1 GiB of hugepages-1Gi available",
        "the hints for hugepages-1Gi cover this as well",
    ]


# Candidates


def demand(free: list[int], amount: int, total: int = 16, **more: Any) -> Demand:
    nodes = tuple(range(len(free)))
    need = Need(
        amount,
        tuple(Supply(1 << node, count) for node, count in zip(nodes, free, strict=True)),
        tuple(Supply(1 << node, total) for node in nodes),
    )
    return Demand(nodes, (need,), **more)


def test_interchangeable_nodes_are_listed_once_on_large_machines() -> None:
    found = candidates(demand([2] + [5] * 33, 8), ("cpu",))
    first, second, *_ = found.told
    assert (str(first.numa), first.text, first.alike) == ("0", "2 CPUs free, 8 needed", 0)
    assert (str(second.numa), second.text, second.alike) == ("1", "5 CPUs free, 8 needed", 32)


def test_of_many_sets_those_that_lack_least_are_shown() -> None:
    found = candidates(demand([1, 2, 3, 4, 5, 6, 7, 0], 20, 16), ("cpu",))
    assert len(found.told) == 10
    assert str(found.told[0].numa) == "1,6"
    assert found.more > 20


def test_an_init_containers_nodes_and_groups_in_use_are_named() -> None:
    found = candidates(
        demand([16, 16], 4, touching=(0b10,), cells=((0, 0b01),)),
        ("memory",),
    )
    told = {str(one.numa): one.text for one in found.told}
    assert told["0"] == "an init container of the pod used node 1, which must be reused"
    assert told["1"] == "16 B of memory free"
    assert NUMASet((0, 1)) not in [one.numa for one in found.told]


def test_sizes_that_look_the_same_are_shown_with_more_digits() -> None:
    (one,) = candidates(
        demand([10 * GIB + GIB // 50], 10 * GIB + GIB // 20, 20 * GIB), ("memory",)
    ).told
    assert one.text == "10.01 GiB of memory free, 10.04 GiB needed"
    (one,) = candidates(demand([10 * GIB], 10 * GIB + 1, 20 * GIB), ("memory",)).told
    assert one.text == "10737418240 B of memory free, 10737418241 B needed"
