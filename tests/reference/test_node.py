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


def test_the_policy_none_keeps_nothing(node: Player, pod: Pod) -> None:
    node.start(cpuManagerPolicy="none")
    answer = node.ask("admit", pod=pod("u1", "2"))["ok"]["containers"]["app0"]
    assert (answer["cpus"], answer["exclusive"]) == ("", "")
    assert answer["affinity"] == {"numa": None, "preferred": False}
    assert node.ask("hints", pod=pod("u1", "2"), container="app0") == {
        "ok": {"cpu": {}, "memory": {}}
    }
    assert node.ask("reconcile") == {"ok": {"updates": []}}


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


def test_a_start_needs_a_machine_or_a_root(node: Player, tmp_path: Path) -> None:
    answer = node.ask("start", config={}, state_dir=str(tmp_path))
    assert "start needs a machine or a root" in answer["fault"]["message"]


def test_a_tree_without_a_machine_is_refused_at_discovery(node: Player, tmp_path: Path) -> None:
    started = node.ask("start", config={}, state_dir=str(tmp_path), root=str(tmp_path / "none"))
    assert started["refused"]["stage"] == "discovery"
    assert node.ask("discover", root=str(tmp_path / "none"))["refused"]["stage"] == "discovery"


# Defects, and the same calls with every documented rule kept


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
