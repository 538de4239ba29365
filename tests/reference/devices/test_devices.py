"""The Device Manager: who gets which devices, what is in the way, where devices could be."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import pytest

from builders import pods
from builders.devices import NIC, reported
from numaproof.reference.checkpoints import devices
from numaproof.reference.deviations import releases
from numaproof.reference.devices import policy
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.policy import DeviceError, Near
from numaproof.reference.devices.state import DeviceState
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.topology.hints import ANYWHERE

if TYPE_CHECKING:
    from numaproof.reference.pods.pod import Pod


def listed(
    resource: str = NIC, *, unhealthy: str = "", **numa: tuple[int, ...] | None
) -> DeviceState:
    return DeviceState().report([reported(resource, unhealthy=unhealthy, **numa)])


def pod_of(uid: str = "p", init: dict[str, str] | None = None, **apps: str) -> Pod:
    """A pod whose containers ask for that many NICs; an init container's ``*`` makes a sidecar."""

    def container(name: str, count: str) -> dict[str, Any]:
        return pods.container(
            name, {"limits": {NIC: count.rstrip("*")}}, sidecar=count.endswith("*")
        )

    return read_pod(
        pods.pod(uid, starmap(container, apps.items()), starmap(container, (init or {}).items()))
    )


def admitted(state: DeviceState, pod: Pod, affinity: int = ANYWHERE) -> DeviceState:
    for container in pod.containers:
        state = policy.allocate(state, pod, container, Near(affinity, affinity))
    return state


def held(state: DeviceState, container: str, uid: str = "p") -> list[str]:
    return sorted(state.of(uid, container).get(NIC, ()))


def refusal(state: DeviceState, pod: Pod) -> str:
    with pytest.raises(DeviceError) as error:
        admitted(state, pod)
    return str(error.value)


def test_without_affinity_the_lowest_ids_are_taken() -> None:
    state = admitted(listed(c=(0,), b=(1,), a=None), pod_of(app="2"))
    assert held(state, "app") == ["a", "b"]


def test_a_shortage_is_reported_without_the_devices_used_again() -> None:
    text = refusal(listed(a=(0,), b=(0,)), pod_of(init={"first": "1"}, app="3"))
    assert text == f"requested number of devices unavailable for {NIC}. Requested: 2, Available: 1"


def test_unhealthy_devices_are_not_handed_out() -> None:
    state = listed(a=(0,), b=(0,), unhealthy="a")
    assert held(admitted(state, pod_of(app="1")), "app") == ["b"]
    text = refusal(listed(a=(0,), unhealthy="a"), pod_of(app="1"))
    assert text == f"no healthy devices present; cannot allocate unhealthy devices {NIC}"


def test_a_pod_admitted_again_is_refused_when_its_device_is_no_longer_healthy() -> None:
    state = admitted(listed(a=(0,), b=(0,)), pod_of(app="1"))
    sick = state.report([reported(a=(0,), b=(0,), unhealthy="a")])
    assert refusal(sick, pod_of(app="1")) == (
        "previously allocated devices are no longer healthy; "
        f"cannot allocate unhealthy devices {NIC}"
    )


def test_a_changed_request_is_refused() -> None:
    state = admitted(listed(a=(0,), b=(0,)), pod_of(app="1"))
    assert refusal(state, pod_of(app="2")) == (
        f'pod "p" container "app" changed request for resource "{NIC}" from 1 to 2'
    )
    state = admitted(listed(a=(0,), b=(0,)), pod_of(app="2"))
    assert refusal(state, pod_of(app="1")) == (
        f'pod "p" container "app" changed request for resource "{NIC}" from 2 to 1'
    )


def test_a_resource_held_but_not_registered_is_refused() -> None:
    state = admitted(listed(a=(0,)), pod_of(app="1"))
    lost = DeviceState(held=state.held, taken=state.taken)
    assert refusal(lost, pod_of(app="1")) == f"cannot allocate unregistered device {NIC}"


@pytest.mark.parametrize("content", [None, b"", b"{}", b"not JSON"])
def test_a_checkpoint_that_says_nothing_counts_for_nothing(content: bytes | None) -> None:
    assert devices.load(content) == DeviceState()


def described(
    state: DeviceState, pod: Pod, name: str | None = "app", version: str = "1.35"
) -> dict[str, object]:
    hints = releases.release(version).rule(DeviceHints)((2, 0, 1))
    if name is None:
        return dict(hints.for_pod(state, pod))
    return dict(hints.for_container(state, pod, pod.container(name)))


def test_a_resource_without_topology_has_no_preference() -> None:
    assert described(listed(a=None, b=()), pod_of(app="1")) == {NIC: None}
    assert described(listed(a=None), pod_of(app="1"), None) == {NIC: None}


def test_a_device_used_again_whose_topology_has_no_nodes_rules_out_every_set() -> None:
    pod = pod_of(init={"first": "1"}, app="1")
    state = policy.allocate(listed(a=(), b=(1,)), pod, pod.container("first"), Near())
    assert described(state, pod) == {NIC: ()}
