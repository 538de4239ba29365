from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations import releases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.reference.conftest import Player

    Machine = Callable[..., dict[str, Any]]
    Pod = Callable[..., dict[str, Any]]


def options(*names: str) -> dict[str, Any]:
    return {
        "cpuManagerPolicyOptions": dict.fromkeys(names, "true"),
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
    }


def test_only_whole_cpus_of_guaranteed_pods_leave_the_shared_pool(node: Player, pod: Pod) -> None:
    node.start()
    assert node.admit(pod("u1", "2", "1500m")) == {"app0": "1,5", "app1": ""}
    assert node.shared() == "0,2-4,6-7"


def test_the_policy_none_keeps_nothing(node: Player, pod: Pod) -> None:
    node.start(cpuManagerPolicy="none")
    answer = node.ask("admit", pod=pod("u1", "2"))["ok"]["containers"]["app0"]
    assert (answer["cpus"], answer["exclusive"]) == ("", "")
    assert answer["affinity"] == {"numa": None, "preferred": False}
    assert node.ask("hints", pod=pod("u1", "2"), container="app0") == {
        "ok": {"cpu": {}, "memory": {}}
    }
    assert node.ask("reconcile") == {"ok": {"updates": []}}


def test_a_pod_that_does_not_fit_is_refused_and_leaves_nothing_behind(
    node: Player, pod: Pod
) -> None:
    node.start()
    refused = node.ask("admit", pod=pod("u1", "2", "6"))["refused"]
    assert refused == {
        "reason": "UnexpectedAdmissionError",
        "message": "Allocate failed due to not enough cpus available to satisfy request: "
        "requested=6, available=5, which is unexpected",
    }
    state = node.ask("state")["ok"]
    assert (state["shared"], state["pods"]) == ("0-7", {})


def test_app_containers_reuse_what_ended_init_containers_had_but_not_what_sidecars_have(
    node: Player, pod: Pod
) -> None:
    node.start()
    held = node.admit(pod("u1", "2", "2", init=("1*", "4")))
    assert held == {"init0": "4", "init1": "1-2,5-6", "app0": "1,5", "app1": "2,6"}
    assert node.shared() == "0,3,7"


def test_a_removed_init_container_leaves_its_app_what_they_share(node: Player, pod: Pod) -> None:
    node.start()
    node.admit(pod("u1", "2", init=("4",)))
    assert node.ask("remove", uid="u1", container="init0") == {"ok": {}}
    assert node.shared() == "0,2-4,6-7"
    assert node.ask("remove", uid="u1") == {"ok": {}}
    assert node.shared() == "0-7"


def test_what_is_not_on_the_node_cannot_be_removed_from_it(node: Player, pod: Pod) -> None:
    node.start()
    node.admit(pod("u1", "1"))
    missing = node.ask("remove", uid="u1", container="zz")["fault"]["message"]
    assert "pod 'u1' has no container 'zz'" in missing
    assert (
        "no pod 'u2' is on the node"
        in node.ask("remove", uid="u2", container="a")["fault"]["message"]
    )
    assert node.ask("remove", uid="u2") == {"ok": {}}


def test_a_restart_gives_the_same_cpus_again_and_reclaims_those_of_pods_that_are_gone(
    node: Player, pod: Pod
) -> None:
    node.start()
    first, second = pod("u1", "2"), pod("u2", "2")
    held = node.admit(first)
    node.admit(second)
    node.start(pods=[first])
    assert node.shared() == "0,2-4,6-7"
    assert node.admit(first) == held


def test_containers_that_a_pod_no_longer_has_are_reclaimed(node: Player, pod: Pod) -> None:
    node.start()
    node.admit(pod("u1", "2", "1"))
    assert node.admit(pod("u1", "2")) == {"app0": "1,5"}
    assert node.shared() == "0,2-4,6-7"


def test_the_runtime_is_told_each_cpu_set_once_and_again_when_it_changes(
    node: Player, pod: Pod
) -> None:
    def told() -> list[tuple[str, str, str]]:
        updates = node.ask("reconcile")["ok"]["updates"]
        return [(item["uid"], item["container"], item["cpus"]) for item in updates]

    node.start()
    node.admit(pod("u1", "500m", init=("1",)))
    assert told() == [("u1", "init0", "4"), ("u1", "app0", "0-3,5-7")]
    assert told() == []
    node.admit(pod("u2", "2"))
    assert told() == [("u1", "app0", "0,2-3,6-7"), ("u2", "app0", "1,5")]
    node.ask("remove", uid="u1", container="init0")
    node.ask("remove", uid="u2")
    assert told() == [("u1", "app0", "0-7")]


def test_hints_name_every_set_of_nodes_that_suffices_smallest_first(
    node: Player, machine: Machine, pod: Pod
) -> None:
    node.start(machine(nodes=2))

    def hints(count: str) -> list[tuple[list[int], bool]]:
        found = node.ask("hints", pod=pod("u", count), container="app0")["ok"]["cpu"]["cpu"]
        return [(hint["numa"], hint["preferred"]) for hint in found]

    assert hints("2") == [([0], True), ([1], True), ([0, 1], False)]
    assert hints("8") == [([1], True), ([0, 1], False)]
    assert hints("9") == [([0, 1], True)]
    assert hints("16") == []


def test_hints_of_a_container_that_has_its_cpus_are_where_they_are(
    node: Player, machine: Machine, pod: Pod
) -> None:
    node.start(machine(nodes=2))
    node.admit(pod("u", "8"))
    for container in ("app0", None):
        found = node.ask("hints", pod=pod("u", "8"), container=container)["ok"]["cpu"]
        assert [hint["numa"] for hint in found["cpu"]] == [[1], [0, 1]]
        other = node.ask("hints", pod=pod("u", "2"), container=container)["ok"]["cpu"]
        assert other == {"cpu": []}
        none = node.ask("hints", pod=pod("v", "500m"), container=container)["ok"]["cpu"]
        assert none == {}


def test_hints_hold_on_to_the_cpus_that_may_be_reused(
    node: Player, machine: Machine, pod: Pod
) -> None:
    node.start(machine(nodes=2))
    node.admit(pod("u", "2", init=("8",)))
    later = pod("u", "2", "4", init=("8",))
    found = node.ask("hints", pod=later, container="app1")["ok"]["cpu"]["cpu"]
    assert [hint["numa"] for hint in found] == [[1], [0, 1]]


def test_align_by_socket_prefers_every_set_of_nodes_within_the_fewest_sockets(
    node: Player, machine: Machine, pod: Pod
) -> None:
    node.start(machine(nodes=4, sockets=2), **options("align-by-socket"))
    found = node.ask("hints", pod=pod("u", "2"), container="app0")["ok"]["cpu"]["cpu"]
    preferred = [hint["numa"] for hint in found if hint["preferred"]]
    assert preferred == [[0], [1], [2], [3], [0, 1], [2, 3]]


def test_hints_for_a_container_that_is_not_there_are_a_fault(node: Player, pod: Pod) -> None:
    node.start()
    answer = node.ask("hints", pod=pod("u", "1"), container="zz")
    assert "pod 'u' has no container 'zz'" in answer["fault"]["message"]


def test_hints_are_not_given_where_sets_of_nodes_cannot_be_named(
    node: Player, machine: Machine, pod: Pod
) -> None:
    node.start(machine(nodes=13))
    answer = node.ask("hints", pod=pod("u", "1"), container="app0")
    assert answer == {"unsupported": {"what": "hints for more than 12 NUMA nodes"}}
    odd = machine()
    odd["topology"][0]["node_id"] = -1
    node.ask("remove", uid="u")
    (node.state_dir / "cpu_manager_state").unlink()
    node.start(odd)
    answer = node.ask("hints", pod=pod("u", "1"), container="app0")
    assert answer == {"unsupported": {"what": "hints for NUMA nodes with negative ids"}}


@pytest.mark.parametrize("operation", ["state", "reconcile"])
def test_after_a_refused_start_there_is_no_node(node: Player, operation: str) -> None:
    node.start()
    node.start(cpuManagerPolicy="bogus")
    assert "fault" in node.ask(operation)


def test_a_release_that_is_not_known_is_unsupported(node: Player) -> None:
    what = node.start(release="1.20")["unsupported"]["what"]
    assert what == f"Kubernetes release '1.20' is not one of {', '.join(RELEASES)}"


NICS = [{"resource": "v.example/nic", "ids": [{"id": "d0", "numa": [1]}]}]
STATIC = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}


def with_nic(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod, whose first container asks for one of `NICS` too."""
    pod["spec"]["containers"][0]["resources"]["limits"]["v.example/nic"] = "1"
    return pod


def test_a_container_is_placed_where_its_device_and_its_cpus_are(
    node: Player, machine: Machine, pod: Pod
) -> None:
    config = {
        **STATIC,
        "topologyManagerPolicy": "single-numa-node",
    }
    # Up to 1.35 a set of nodes is a hint too that has nodes without devices in it.
    place = {"state_dir": str(node.state_dir), "devices": NICS, "kubernetes": "1.35"}
    node.ask("start", machine=machine(nodes=2), config=config, **place)
    asked = with_nic(pod("u", "2"))
    hints = node.ask("hints", pod=asked, container="app0")["ok"]
    assert hints["devices"] == {
        "v.example/nic": [{"numa": [1], "preferred": True}, {"numa": [0, 1], "preferred": False}]
    }
    admitted = node.ask("admit", pod=asked)["ok"]["containers"]["app0"]
    assert admitted["devices"] == {"v.example/nic": ["d0"]}
    assert admitted["affinity"] == {"numa": [1], "preferred": True}
    assert admitted["exclusive"] == "4,12"


def test_a_device_that_is_taken_is_refused_by_the_topology_manager(
    node: Player, machine: Machine, pod: Pod
) -> None:
    config = {
        **STATIC,
        "topologyManagerPolicy": "restricted",
    }
    node.ask("start", machine=machine(nodes=2), config=config, state_dir=str(node.state_dir))
    assert node.ask("devices", devices=NICS) == {"ok": {}}
    assert "ok" in node.ask("admit", pod=with_nic(pod("a", "2")))
    assert node.ask("admit", pod=with_nic(pod("b", "2"))) == {
        "refused": {
            "reason": "TopologyAffinityError",
            "message": "Resources cannot be allocated with Topology locality",
        }
    }
    assert list(node.ask("state")["ok"]["pods"]) == ["a"]
    node.ask("remove", uid="a", container="app0")
    app = node.ask("state")["ok"]["pods"]["a"]["app0"]
    assert app["affinity"] == {"numa": None, "preferred": False}
    assert app["devices"] == {"v.example/nic": ["d0"]}


def test_a_pod_that_leaves_takes_no_other_pods_affinity_along(
    node: Player, machine: Machine, pod: Pod
) -> None:
    config = {**STATIC, "topologyManagerPolicy": "best-effort"}
    node.ask("start", machine=machine(nodes=2), config=config, state_dir=str(node.state_dir))
    for uid in "abc":
        node.admit(pod(uid, "2"))
    before = node.ask("state")["ok"]["pods"]
    assert all(one["app0"]["affinity"]["preferred"] for one in before.values())
    node.ask("remove", uid="b")
    assert node.ask("state")["ok"]["pods"] == {uid: before[uid] for uid in "ac"}


def test_a_pod_of_scope_pod_is_placed_as_a_whole(node: Player, machine: Machine, pod: Pod) -> None:
    config = {
        **STATIC,
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
    }
    node.ask("start", machine=machine(nodes=2), config=config, state_dir=str(node.state_dir))
    admitted = node.ask("admit", pod=pod("u", "4", "4"))["ok"]["containers"]
    assert {one["affinity"]["numa"][0] for one in admitted.values()} == {1}
    assert node.ask("admit", pod=pod("v", "4", "4"))["refused"]["reason"] == (
        "TopologyAffinityError"
    )


def test_a_start_needs_a_machine_or_a_root(node: Player, tmp_path: Path) -> None:
    answer = node.ask("start", config={}, state_dir=str(tmp_path))
    assert "start needs a machine or a root" in answer["fault"]["message"]


def test_a_tree_without_a_machine_is_refused_at_discovery(node: Player, tmp_path: Path) -> None:
    started = node.ask("start", config={}, state_dir=str(tmp_path), root=str(tmp_path / "none"))
    assert started["refused"]["stage"] == "discovery"
    assert node.ask("discover", root=str(tmp_path / "none"))["refused"]["stage"] == "discovery"


# Defects, and the same calls with every documented rule kept


def half_offline(machine: Machine) -> dict[str, Any]:
    shape = machine()
    cores = shape["topology"][0]["cores"]
    for core in cores[2:]:
        del core["thread_ids"][1]
    return {**shape, "num_cores": 6}


def test_on_half_offline_cores_a_cpu_is_shared_and_exclusive_at_once(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    shape = half_offline(machine)
    node.start(shape)
    assert node.admit(pod("u", "2")) == {"app0": "0,3"}
    assert node.admit(pod("v", "2")) == {"app0": "0,4"}
    (node.state_dir / "cpu_manager_state").unlink()
    documented.start(shape)
    held = [documented.admit(pod(uid, "2"))["app0"] for uid in ("u", "v")]
    assert held == ["2-3", "1,5"]


def test_with_full_pcpus_only_a_pod_is_refused_its_own_cpus_after_a_restart(
    node: Player, documented: Player, pod: Pod
) -> None:
    node.start(**options("full-pcpus-only"))
    own = pod("u", "4")
    held = node.admit(own)
    node.start(pods=[own], **options("full-pcpus-only"))
    refused = node.ask("admit", pod=own)["refused"]
    assert refused["reason"] == "SMTAlignmentError"
    node.start(pods=[], **options("full-pcpus-only"))
    documented.start(**options("full-pcpus-only"))
    assert documented.admit(own) == held
    documented.start(pods=[own], **options("full-pcpus-only"))
    assert documented.admit(own) == held


def test_an_app_container_takes_free_cpus_beside_those_of_its_init_container(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    shape = machine(nodes=2, sockets=2)
    first = pod("u", "8", init=("2",))
    node.start(shape)
    assert node.admit(first) == {"init0": "1,9", "app0": "4-7,12-15"}
    node.ask("remove", uid="u")
    documented.start(shape)
    held = documented.admit(first)
    assert set(held["init0"].split(",")) <= {"1", "9"}
    assert held["app0"].startswith("1")
    assert documented.shared().count(",") <= 3


def test_a_pod_that_comes_back_has_no_container_that_ended(node: Player, pod: Pod) -> None:
    node.start()
    node.admit(pod("u", "2"))
    told = node.ask("reconcile")["ok"]["updates"]
    node.ask("remove", uid="u", container="app0")
    assert node.ask("reconcile")["ok"]["updates"] == []
    node.ask("remove", uid="u")
    node.admit(pod("u", "2"))
    assert node.ask("reconcile")["ok"]["updates"] == told


def test_what_names_no_release_is_of_the_newest() -> None:
    assert releases.release(None) == releases.release(RELEASES[-1])


@pytest.mark.parametrize("number", [-1, 1 << 40])
def test_a_cpu_that_no_machine_has_is_a_fault_of_the_request(
    node: Player, machine: Machine, number: int
) -> None:
    odd = machine()
    odd["topology"][0]["cores"][0]["thread_ids"][0] = number
    answer = node.ask("assign", machine=odd, available="0-1", count=1, options={})
    assert "no machine has them" in answer["fault"]["message"]
    assert "trace" not in answer["fault"]


def test_a_root_that_is_no_path_is_a_fault_of_the_request(node: Player) -> None:
    answer = node.ask("discover", root="a\0b")
    assert "NUL character" in answer["fault"]["message"]
    assert "trace" not in answer["fault"]
