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
from numaproof.reference.topology.hints import ANYWHERE, Demand, Need, Supply

if TYPE_CHECKING:
    from numaproof.reference.pods.pod import Pod

OTHER = "vendor.example/other"


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


def test_devices_near_the_affinity_come_first_and_those_without_topology_last() -> None:
    state = listed(a=None, b=(0,), c=(1,), d=(0, 1))
    assert held(admitted(state, pod_of(app="2"), 0b10), "app") == ["c", "d"]
    assert held(admitted(state, pod_of(app="3"), 0b10), "app") == ["b", "c", "d"]


def test_app_containers_take_what_ended_init_containers_had() -> None:
    state = admitted(listed(a=(0,), b=(0,)), pod_of(init={"first": "2"}, app="1", beside="1"))
    assert held(state, "first") == ["a", "b"]
    assert held(state, "app") + held(state, "beside") == ["a", "b"]


def test_sidecars_keep_their_devices() -> None:
    text = refusal(listed(a=(0,)), pod_of(init={"beside": "1*"}, app="1"))
    assert text == f"requested number of devices unavailable for {NIC}. Requested: 1, Available: 0"


def test_a_shortage_is_reported_without_the_devices_used_again() -> None:
    text = refusal(listed(a=(0,), b=(0,)), pod_of(init={"first": "1"}, app="3"))
    assert text == f"requested number of devices unavailable for {NIC}. Requested: 2, Available: 1"


def test_unhealthy_devices_are_not_handed_out() -> None:
    state = listed(a=(0,), b=(0,), unhealthy="a")
    assert held(admitted(state, pod_of(app="1")), "app") == ["b"]
    text = refusal(listed(a=(0,), unhealthy="a"), pod_of(app="1"))
    assert text == f"no healthy devices present; cannot allocate unhealthy devices {NIC}"


def test_a_request_for_none_still_needs_a_healthy_device() -> None:
    assert "no healthy devices" in refusal(listed(), pod_of(app="0"))
    assert held(admitted(listed(a=None), pod_of(app="0")), "app") == []


def test_a_pod_that_is_admitted_again_keeps_its_devices() -> None:
    state = admitted(listed(a=(0,), b=(0,)), pod_of(app="1"))
    assert admitted(state, pod_of(app="1")).held == state.held


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


def test_resources_that_no_plugin_serves_are_passed_over() -> None:
    assert admitted(DeviceState(), pod_of(app="3")).held == {}


def test_a_resource_held_but_not_registered_is_refused() -> None:
    state = admitted(listed(a=(0,)), pod_of(app="1"))
    lost = DeviceState(held=state.held, taken=state.taken)
    assert refusal(lost, pod_of(app="1")) == f"cannot allocate unregistered device {NIC}"


def test_a_refused_pod_leaves_its_devices_until_it_is_gone() -> None:
    pod = pod_of(app="1", beside="2")
    with pytest.raises(DeviceError) as error:
        admitted(listed(a=(0,), b=(0,)), pod)
    left = error.value.state
    assert held(left, "app") == ["a"]
    assert left.release("p", "").available(NIC) == {"a", "b"}


def test_what_one_pod_could_use_again_is_not_for_another() -> None:
    first = pod_of("p", init={"first": "1"}, app="0")
    state = admitted(listed(a=(0,), b=(0,)), first)
    assert held(admitted(state, pod_of("q", app="1")), "app", "q") == ["b"]


def test_allocations_outlive_a_restart_but_devices_wait_for_their_plugin() -> None:
    state = admitted(listed(a=(0,)), pod_of(app="1"))
    again = devices.load(devices.dump(state))
    assert again.held == state.held
    assert "no healthy devices" in refusal(again, pod_of("q", app="1"))
    assert admitted(again.report([reported(a=(0,))]), pod_of(app="1")).held == state.held


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


def test_hints_are_described_by_what_is_free_and_what_there_is() -> None:
    state = admitted(listed(a=(0,), b=(0,), c=(0, 1), d=None), pod_of("q", app="1"))
    total = (Supply(0b01, 2), Supply(0b11, 1))
    need = Need(1, (Supply(0b01, 1), Supply(0b11, 1)), total)
    assert described(state, pod_of(app="1")) == {NIC: Demand((2, 0, 1), (need,))}


def test_newer_kubelets_look_only_at_nodes_with_devices() -> None:
    state = listed(a=(1,), b=(0,))
    found = described(state, pod_of(app="1"), version="1.36")[NIC]
    assert isinstance(found, Demand)
    assert found.nodes == (0, 1)
    elsewhere = described(listed(a=(9,)), pod_of(app="1"), version="1.36")[NIC]
    assert isinstance(elsewhere, Demand)
    assert elsewhere.nodes == (2, 0, 1)


def test_a_resource_without_topology_has_no_preference() -> None:
    assert described(listed(a=None, b=()), pod_of(app="1")) == {NIC: None}
    assert described(listed(a=None), pod_of(app="1"), None) == {NIC: None}


@pytest.mark.parametrize("name", ["app", None])
def test_a_request_beyond_what_is_free_has_no_hints(name: str | None) -> None:
    assert described(listed(a=(0,)), pod_of(app="2"), name) == {NIC: ()}


@pytest.mark.parametrize("name", ["app", None])
def test_a_container_with_devices_gets_hints_for_those(name: str | None) -> None:
    state = admitted(listed(a=(0,), b=(1,)), pod_of(app="1"))
    found = described(state, pod_of(app="1"), name)[NIC]
    assert isinstance(found, Demand)
    assert found.needs[0].free == (Supply(0b01, 1),)
    assert described(state, pod_of(app="2"), name) == {NIC: ()}


def test_what_is_used_again_must_be_among_the_nodes() -> None:
    pod = pod_of(init={"first": "1"}, app="2")
    state = policy.allocate(listed(a=(0,), b=(1,)), pod, pod.container("first"), Near())
    found = described(state, pod)[NIC]
    assert isinstance(found, Demand)
    assert found.touching == (0b01,)
    assert found.needs[0].free == (Supply(0b01, 1), Supply(0b10, 1))


def test_a_device_used_again_whose_topology_has_no_nodes_rules_out_every_set() -> None:
    pod = pod_of(init={"first": "1"}, app="1")
    state = policy.allocate(listed(a=(), b=(1,)), pod, pod.container("first"), Near())
    assert described(state, pod) == {NIC: ()}


def test_a_pod_asks_for_what_it_needs_when_it_needs_most() -> None:
    pod = pod_of(init={"beside": "1*", "first": "3"}, app="1", second="1")
    found = described(listed(a=(0,), b=(0,), c=(0,), d=(0,), e=(0,)), pod, None)[NIC]
    assert isinstance(found, Demand)
    assert found.needs[0].amount == 4


def test_hints_leave_out_resources_that_no_plugin_serves() -> None:
    assert described(listed(OTHER, a=(0,)), pod_of(app="1")) == {}
    assert described(listed(OTHER, a=(0,)), pod_of(app="1"), None) == {}
