"""Explanations of admissions agree with the reference."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import machines, pods
from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Demand, Need, Supply
from numaproof.reference.topology.search.evaluation import list_hints
from numaproof.simulation import devices
from numaproof.simulation.admission import EveryPod, Question, Simulation, admit_all, begin
from numaproof.simulation.explaining import Allocation, Merge, Room, candidates, observe
from numaproof.simulation.pods import DescribedPod

if TYPE_CHECKING:
    from collections.abc import Iterator


NIC = "vendor.example/nic"
GIB = 1 << 30
MEMORY = {
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}
WHOLE = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}


def question(name: str, config: dict[str, Any], *device_flags: str) -> Question:
    found = machines.discover_profile(name)
    all_of = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,1", **config}
    return Question(found, all_of, "1.36", devices=devices.read(device_flags, found))


def pod(name: str, *limits: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> DescribedPod:
    def resources(each: dict[str, Any]) -> dict[str, Any]:
        return {"limits": {"memory": "1Gi", **each}}

    return DescribedPod(name, pods.numbered_pod(name, map(resources, limits), map(resources, init)))


def ask(node_question: Question, *pods: DescribedPod, explain_all: bool = False) -> Simulation:
    with tempfile.TemporaryDirectory() as folder:
        return admit_all(
            node_question, pods, folder, explain_pods=EveryPod() if explain_all else ()
        )


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
def test_every_rejection_is_explained_by_the_reference(
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
        elif verdict.refusal.reason.startswith("OutOf"):
            assert isinstance(last, Room)
            assert last.request + last.others > last.allocatable
        else:
            assert isinstance(last, Allocation)
            assert last.message == verdict.refusal.message
            assert last.text


@settings(max_examples=25, deadline=None)
@given(requests=REQUESTS, scope=st.sampled_from(["container", "pod"]))
def test_explanations_of_node_sets_agree_with_hints(
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
    hints = {hint.nodes: hint.preferred for hint in list_hints(demand)}
    found = candidates(demand, names)
    assert len(found.sets) <= 10
    for one in found.sets:
        marks = {None: "impossible", True: "preferred", False: "possible"}
        assert one.mark == marks[hints.get(one.numa.mask)]
        assert one.text


def test_explaining_does_not_change_the_node() -> None:
    asked = question("xeon-gold-6230-2s", {**MEMORY, "topologyManagerPolicy": "restricted"})
    with tempfile.TemporaryDirectory() as folder:
        reference, _ = begin(asked, folder)
        node = reference.node
        assert node is not None
        before = reference.call("state", messages.NoArgs())
        manifest = pod("p", {"cpu": 2}, init=({"cpu": 3},)).manifest
        assert observe(node, node.read_pod(manifest), node.setup.topology_policy).admitted
        assert reference.call("state", messages.NoArgs()) == before


# Texts

BEST = {"topologyManagerPolicy": "best-effort"}
RESTRICTED = {"topologyManagerPolicy": "restricted"}
SINGLE = {"topologyManagerPolicy": "single-numa-node"}
BY_POD = {"topologyManagerScope": "pod"}
NONE = {"cpuManagerPolicy": "none"}

Asked = tuple[str, dict[str, Any], list[DescribedPod], tuple[str, ...]]

XEON = "xeon-gold-6230-2s"
SMALL = "laptop-4c8t"
ASKED: dict[str, Asked] = {
    "too few free on each node": (
        XEON,
        RESTRICTED,
        [pod("a", {"cpu": 30}), pod("b", {"cpu": 30}), pod("c", {"cpu": 12})],
        (),
    ),
    "more than a node has": (XEON, SINGLE, [pod("a", {"cpu": 60})], ()),
    "nodes that differ": (
        XEON,
        SINGLE,
        [pod("a", {"cpu": 36}), pod("b", {"cpu": 20, NIC: 1})],
        (f"{NIC}=1@0",),
    ),
    "a pod as a whole": (
        XEON,
        RESTRICTED | BY_POD,
        [pod("a", {NIC: 2}, {NIC: 2})],
        (f"{NIC}=3@0",),
    ),
    "too few devices": (
        XEON,
        {},
        [pod("a", {"cpu": 38, NIC: 1}), pod("b", {"cpu": 2, NIC: 2})],
        (f"{NIC}=2@0",),
    ),
    "too few CPUs": (XEON, {}, [pod("a", {"cpu": 70}), pod("b", {"cpu": 9})], ()),
    "half a core": (XEON, WHOLE, [pod("a", {"cpu": 3})], ()),
    "too few cores": (XEON, WHOLE, [pod("a", {"cpu": 70}), pod("b", {"cpu": 8})], ()),
    "too little memory": (XEON, MEMORY, [pod("a", {"cpu": 2, "memory": "1000Gi"})], ()),
    "nodes in a group": (
        XEON,
        MEMORY | BEST,
        [pod("a", {"cpu": 2, "memory": "100Gi"}), pod("b", {"cpu": 2, "memory": "94Gi"})],
        (),
    ),
    "a node that lacks memory": (
        XEON,
        MEMORY | BEST | BY_POD,
        [
            pod("a", {"cpu": 30, "memory": "60Gi"}),
            pod("b", {"cpu": 2, "memory": "40Gi"}, {"cpu": 2, "memory": "94Gi"}),
        ],
        (),
    ),
    "memory of an init container": (
        XEON,
        MEMORY | RESTRICTED | BY_POD,
        [pod("a", {"cpu": 50, "memory": "60Gi"}, init=({"cpu": 2, "memory": "150Gi"},))],
        (),
    ),
    "half a byte": (XEON, MEMORY, [pod("a", {"cpu": 2, "memory": "1.5Gi"})], ()),
    "cores that would do": (SMALL, WHOLE, [pod("a", {"cpu": 1})], ()),
    "fewer CPUs that would do": (SMALL, {}, [pod("a", {"cpu": 7})], ()),
    "nothing that would do": (SMALL, RESTRICTED, [pod("a", {"cpu": 7})], ()),
    "the second container": (SMALL, RESTRICTED, [pod("a", {"cpu": 2}, {"cpu": 5})], ()),
    "all that is lacking": (
        SMALL,
        RESTRICTED,
        [pod("a", {"cpu": 7, NIC: 2})],
        (f"{NIC}=1@0",),
    ),
    "memory of all types": (
        "hugepages-2s",
        MEMORY | RESTRICTED,
        [pod("a", {"cpu": 2, "memory": "100Gi", "hugepages-1Gi": "1Gi", NIC: 1})],
        (f"{NIC}=1",),
    ),
    "no preference of policy none": (SMALL, NONE | BEST, [pod("a", {"cpu": 2})], ()),
    "no preference for half a CPU": (SMALL, BEST, [pod("a", {"cpu": "1500m"})], ()),
    "no preference for half a byte": (
        SMALL,
        MEMORY | BEST,
        [pod("a", {"cpu": 2, "memory": "1.5Gi"})],
        (),
    ),
    "no preference of a plugin": (SMALL, BEST, [pod("a", {"cpu": 2, NIC: 1})], (f"{NIC}=1",)),
}


def explanation_lines() -> Iterator[str]:
    """Returns the explanation of each question's last pod."""
    for title, (machine, config, asked_pods, given_devices) in ASKED.items():
        asked = question(machine, config, *given_devices)
        verdict = ask(asked, *asked_pods, explain_all=True).pods[-1]
        assert verdict.explanation is not None
        yield f"{title}: {verdict.explanation.summary}"
        for step in verdict.explanation.steps:
            who = (getattr(step, "manager", None), getattr(step, "resource", None))
            yield "  " + "".join(f"{one}: " for one in who if one) + step.text
        yield from (f"  Hint: {one}" for one in verdict.explanation.advice)


def test_explanations_match_their_page() -> None:
    page = Path(__file__).parent / "pages" / "explained.txt"
    shown = "\n".join(explanation_lines()) + "\n"
    if os.environ.get("NUMAPROOF_WRITE_PAGES"):
        page.parent.mkdir(exist_ok=True)
        page.write_text(shown, "utf-8")
    assert shown == page.read_text("utf-8")


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
    first, second, *_ = found.sets
    assert (str(first.numa), first.text, first.alike) == ("0", "2 CPUs free, 8 needed", 0)
    assert (str(second.numa), second.text, second.alike) == ("1", "5 CPUs free, 8 needed", 32)


def test_the_closest_of_many_sets_are_shown() -> None:
    found = candidates(demand([1, 2, 3, 4, 5, 6, 7, 0], 20, 16), ("cpu",))
    assert len(found.sets) == 10
    assert str(found.sets[0].numa) == "1,6"
    assert found.more > 20


def test_nodes_of_init_containers_and_groups_are_named() -> None:
    found = candidates(
        demand([16, 16], 4, touching=(0b10,), cells=((0, 0b01),)),
        ("memory",),
    )
    told = {str(one.numa): one.text for one in found.sets}
    assert told["0"] == "an init container of the pod used node 1, which must be reused"
    assert told["1"] == "16 B of memory free"
    assert NUMASet((0, 1)) not in [one.numa for one in found.sets]


def test_similar_sizes_are_shown_with_more_digits() -> None:
    (one,) = candidates(
        demand([10 * GIB + GIB // 50], 10 * GIB + GIB // 20, 20 * GIB), ("memory",)
    ).sets
    assert one.text == "10.01 GiB of memory free, 10.04 GiB needed"
    (one,) = candidates(demand([10 * GIB], 10 * GIB + 1, 20 * GIB), ("memory",)).sets
    assert one.text == "10737418240 B of memory free, 10737418241 B needed"


def test_overhead_is_named_where_it_counts() -> None:
    large = pod("kata", {"cpu": "20"})
    large.manifest["spec"]["overhead"] = {"cpu": "60500m"}
    (result,) = ask(question("xeon-gold-6230-2s", {}), large).pods
    assert result.explanation
    text = "80.5 CPUs requested (overhead: 60.5 CPUs), 78 CPUs allocatable"
    assert result.explanation.summary == text


def test_advice_covers_all_containers_that_split_cores() -> None:
    asked = question("xeon-gold-6230-2s", {**WHOLE, "reservedSystemCPUs": "0,40"})
    sizes = ({"cpu": "19"}, {"cpu": "4"}, {"cpu": "1"})
    (result,) = ask(asked, pod("odd", *sizes)).pods
    assert result.explanation
    text = "request 18 or 20 CPUs for container app0 and 2 CPUs for container app2"
    assert result.explanation.advice == (text,)
    (result,) = ask(asked, pod("odd", sizes[0], sizes[1])).pods
    assert result.explanation
    assert result.explanation.advice == ("request 18 or 20 CPUs",)


def test_advised_cpus_leave_enough_for_other_containers() -> None:
    asked = question("xeon-gold-6230-2s", {"cpuManagerPolicy": "static"})
    for sizes, advice in (
        ((70, 20), ("request at most 8 CPUs",)),
        ((70, 20, 2), ("request at most 6 CPUs",)),
        ((70, 20, 9), ()),
    ):
        (result,) = ask(asked, pod("large", *({"cpu": str(size)} for size in sizes))).pods
        assert result.explanation
        assert result.explanation.advice == advice


def test_an_amount_that_is_not_whole_is_named_with_the_amount_to_write() -> None:
    reserved = [{"numaNode": 0, "limits": {"memory": "100Mi"}}]
    config = {"memoryManagerPolicy": "Static", "reservedMemory": reserved}
    asked = question("xeon-gold-6230-2s", config)
    for text, advice in (
        ("1073741824000m", "write 1Gi"),
        ("1.5Gi", "write 1536Mi"),
        ("512m", "write 512Mi if that is meant"),
        ("1073741824500m", "write 1073741825"),
    ):
        (result,) = ask(asked, pod("odd", {"cpu": "1", "memory": text})).pods
        why = result.explanation
        assert why
        assert why.summary == (
            f"container app0: the kubelet cannot convert memory {text} to a whole number of bytes"
        )
        assert why.advice == (advice,)


def test_a_weaker_policy_is_advised_only_if_the_pod_fits() -> None:
    asked = question("xeon-gold-6230-2s", {"topologyManagerPolicy": "restricted"})
    policy = "the pod would be admitted with topologyManagerPolicy: best-effort"
    huge = {"cpu": "30", "memory": "1000Gi"}
    for sizes, advice in (({"cpu": "30"}, (policy,)), (huge, ())):
        first = [pod(name, {"cpu": "20"}) for name in "ab"]
        *_, result = ask(asked, *first, pod("c", sizes)).pods
        assert result.refusal
        assert result.refusal.reason == "TopologyAffinityError"
        assert result.explanation
        assert result.explanation.advice == advice


def test_advised_cpus_fit_into_what_is_allocatable() -> None:
    asked = question("xeon-gold-6230-2s", {})
    shared = pod("shared", {"cpu": "1500m"})
    *_, result = ask(asked, shared, pod("a", {"cpu": "70"}), pod("b", {"cpu": "9"})).pods
    assert result.explanation
    assert result.explanation.advice == ("request at most 6 CPUs",)


def test_whole_cores_are_advised_only_if_the_pod_fits() -> None:
    asked = question("xeon-gold-6230-2s", {**WHOLE, "reservedSystemCPUs": "0,40"})
    for size, advice in (("3", ("request 2 CPUs",)), ("5", ())):
        *_, result = ask(asked, pod("a", {"cpu": "76"}), pod("b", {"cpu": size})).pods
        assert result.explanation
        assert result.explanation.advice == advice
