"""The smallest set of pods without which a node admits a refused pod."""

from __future__ import annotations

import tempfile
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import machines, pods
from numaproof.protocol import messages
from numaproof.reference.pods.manifest import read_pod
from numaproof.simulation import devices, removals
from numaproof.simulation.admission import Question, begin, node_of
from numaproof.simulation.removals import removable, smallest_removal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

    from numaproof.reference.implementation import Reference
    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.removals import Removals

NIC = "vendor.example/nic"
MEMORY = {
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}


def started(machine: str, config: dict[str, Any], folder: str, *flags: str) -> Reference:
    found = machines.discover_profile(machine)
    every = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", **config}
    question = Question(found, every, "1.36", devices=devices.read(flags, found))
    return begin(question, folder)[0]


def manifest(name: str, *limits: dict[str, Any], priority: int = 0) -> dict[str, Any]:
    resources = [{"limits": {"memory": "1Gi", **one}} for one in limits]
    return pods.numbered_pod(name, resources, priority=priority)


def admit(reference: Reference, pod: dict[str, Any]) -> bool:
    answer = reference.call("admit", messages.AdmitArgs(pod))
    return isinstance(answer, messages.Admitted)


def describe(pod: Pod) -> removals.RemovablePod:
    return removable(pod, pod.uid)


def find(node: StartedNode, pod: dict[str, Any]) -> Removals:
    return smallest_removal(node, read_pod(pod), describe)


def names(found: Removals) -> list[str]:
    return [one.pod for one in found.pods]


def key(node: StartedNode, asking: Pod, uids: Iterable[str]) -> tuple[int, ...]:
    """The order of sets that the documentation promises."""
    each = [node.pods[uid] for uid in uids]
    return (
        sum((one.priority or 0) > (asking.priority or 0) for one in each),
        len(each),
        sum(one.priority or 0 for one in each),
        sum(describe(one).cpus for one in each),
    )


AMOUNTS = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["1", "2", "3", "4", "6", "500m"])},
    optional={"memory": st.sampled_from(["1Gi", "20Gi", "60Gi"]), NIC: st.integers(0, 2)},
)
POD = st.tuples(st.lists(AMOUNTS, min_size=1, max_size=2), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(
    running=st.lists(POD, min_size=1, max_size=7),
    asking=POD,
    policy=st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    scope=st.sampled_from(["container", "pod"]),
    memory=st.booleans(),
    whole=st.booleans(),
)
@example(  # an empty node refuses this pod, but the node without one pod admits it
    running=[([{"cpu": "1"}], 0), ([{"cpu": "2", "memory": "60Gi"}], 0), ([{"cpu": "2"}], 0)],
    asking=([{"cpu": "1"}, {"cpu": "1", "memory": "60Gi"}], 0),
    policy="none",
    scope="container",
    memory=True,
    whole=True,
)
def test_no_better_set_suffices(
    running: list[Any],
    asking: Any,
    policy: str,
    scope: str,
    memory: bool,  # noqa: FBT001 - drawn
    whole: bool,  # noqa: FBT001 - drawn
) -> None:
    config = {"topologyManagerPolicy": policy, "topologyManagerScope": scope}
    config |= MEMORY if memory else {}
    config |= {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}} if whole else {}
    with tempfile.TemporaryDirectory() as folder:
        reference = started("4-nodes-4-cores-2-threads", config, folder, f"{NIC}=1@0,1@1,1@2-3")
        for number, (limits, priority) in enumerate(running):
            admit(reference, manifest(f"p{number}", *limits, priority=priority))
        asked = [
            {**one, "cpu": f"{2 * int(one['cpu'])}"} if one["cpu"].isdigit() else one
            for one in asking[0]
        ]
        pod = manifest("new", *asked, priority=asking[1])
        node = removals.snapshot(node_of(reference))
        sufficient = [
            some
            for size in range(len(node.pods) + 1)
            for some in combinations(node.pods, size)
            if removals.admits(node, read_pod(pod), some)
        ]
        if () in sufficient:
            return
        own = read_pod(pod)
        best = min((key(node, own, some) for some in sufficient), default=None)
        found = find(node, pod)
        assert found.smallest
        assert best == (key(node, own, names(found)) if found.pods else None)
        for uid in names(found):
            reference.call("remove", messages.RemoveArgs(uid))
        assert admit(reference, pod) == bool(found.pods)


def filled(folder: str, *, count: int = 60, policy: str = "single-numa-node") -> Reference:
    """A node with 384 CPUs and many pods of different sizes and priorities."""
    config = {**MEMORY, "topologyManagerPolicy": policy}
    reference = started("epyc-9654-2s-nps4", config, folder)
    for number in range(count):
        amounts = {"cpu": f"{1 + number * 7 % 11}", "memory": f"{1 + number % 5}Gi"}
        assert admit(reference, manifest(f"p{number}", amounts, priority=number % 4))
    return reference


def test_sixty_pods_need_few_trials(tmp_path: Path) -> None:
    reference = filled(str(tmp_path))
    for cpus, policy_allows in (("46", True), ("60", False)):
        pod = manifest("new", {"cpu": cpus}, priority=3)
        found = find(node_of(reference), pod)
        assert found.smallest
        assert bool(found.pods) == policy_allows
        assert found.trials <= 100
        assert found.higher == 0


def test_a_search_that_is_cut_still_finds_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = filled(str(tmp_path))
    monkeypatch.setattr(removals, "MAX_VISITS", 3)
    node = node_of(reference)
    pod = manifest("new", {"cpu": "46"}, priority=1)
    found = find(node, pod)
    assert not found.smallest
    assert removals.admits(node, read_pod(pod), names(found))


def test_higher_priorities_go_only_if_lower_ones_are_not_enough(tmp_path: Path) -> None:
    reference = started("laptop-4c8t", {}, str(tmp_path))
    for name, cpus, priority in (("high", "4", 9), ("a", "1", 0), ("b", "1", 0)):
        assert admit(reference, manifest(name, {"cpu": cpus}, priority=priority))
    node = node_of(reference)
    few = find(node, manifest("new", {"cpu": "3"}, priority=5))
    assert (names(few), few.higher) == (["a", "b"], 0)
    many = find(node, manifest("new", {"cpu": "5"}, priority=5))
    assert (names(many), many.higher) == (["high"], 1)
    assert find(node, manifest("new", {"cpu": "8"}, priority=5)).pods == ()


def test_pods_that_come_back_are_marked() -> None:
    critical = read_pod(manifest("a", {"cpu": "1"}, priority=2_000_001_000))
    found = removable(critical, "Pod/kube-system/a", "DaemonSet/a", is_static=True)
    assert found.marks == ("static", "DaemonSet", "critical")
    assert removable(read_pod(manifest("b", {"cpu": "1"})), "Pod/x/b", "ReplicaSet/b").marks == ()
