"""What a kubelet forgets when a pod goes, and what its files still say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import devices, pods
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Callable

NICS = [codec.to_plain(devices.reported(a=None, b=None))]


def asking(uid: str, *nics: int) -> dict[str, Any]:
    """A pod whose containers ask for so many devices each."""
    return pods.numbered(uid, [{"limits": {devices.NIC: str(count)}} for count in nics])


def test_a_container_in_the_shared_pool_is_reported_again_when_its_pod_comes_back(
    node: Any, pod: Callable[..., dict[str, Any]]
) -> None:
    node.start()
    shared = pod("a", "500m")
    for _ in range(2):
        node.admit(shared)
        assert len(node.ask("reconcile")["ok"]["updates"]) == 1
        assert node.ask("reconcile")["ok"]["updates"] == []
        node.ask("remove", uid="a")


def start(node: Any, machine: dict[str, Any]) -> None:
    state_dir = str(node.state_dir)
    assert "ok" in node.ask("start", machine=machine, config={}, state_dir=state_dir, devices=NICS)


def test_devices_of_a_refused_pod_are_its_own_again_after_a_restart(
    node: Any, machine: Callable[..., dict[str, Any]]
) -> None:
    start(node, machine())
    refused = node.ask("admit", pod=asking("a", 2, 1))["refused"]
    assert "Requested: 1, Available: 0" in refused["message"]
    # The state takes them back, which is not written: the file still has them.
    node.ask("state")
    start(node, machine())
    node.ask("admit", pod=asking("a"))
    refused = node.ask("admit", pod=asking("b", 1))["refused"]
    assert "Requested: 1, Available: 0" in refused["message"]


def test_the_next_allocation_writes_what_was_taken_back(
    node: Any, machine: Callable[..., dict[str, Any]]
) -> None:
    start(node, machine())
    node.ask("admit", pod=asking("a", 1, 2))
    assert "ok" in node.ask("admit", pod=asking("b", 1))
    start(node, machine())
    node.ask("admit", pod=asking("a"))
    refused = node.ask("admit", pod=asking("c", 3))["refused"]
    assert "Requested: 3, Available: 2" in refused["message"]


@pytest.mark.parametrize("between", ["nothing", "a pod without devices", "reconcile"])
def test_devices_of_a_refused_pod_stay_its_own_until_the_device_manager_is_asked(
    node: Any, machine: Callable[..., dict[str, Any]], between: str
) -> None:
    start(node, machine())
    assert "refused" in node.ask("admit", pod=asking("a", 2, 1))
    if between == "reconcile":
        node.ask("reconcile")
    elif between == "a pod without devices":
        assert "ok" in node.ask("admit", pod=pods.numbered("b", [{}]))
    refused = node.ask("admit", pod=renamed(asking("a", 1)))["refused"]
    assert "Requested: 1, Available: 0" in refused["message"]


def renamed(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod with containers of other names."""
    containers = [{**one, "name": f"other-{one['name']}"} for one in pod["spec"]["containers"]]
    return pods.pod(pod["metadata"]["uid"], containers)
