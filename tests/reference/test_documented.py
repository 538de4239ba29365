"""The kubelet's answers and the documented ones, where a named defect tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders import machines

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player

    Machine = Callable[..., dict[str, Any]]
    Pod = Callable[..., dict[str, Any]]


def options(*names: str, reserved: str = "0") -> dict[str, Any]:
    return {
        "cpuManagerPolicyOptions": dict.fromkeys(names, "true"),
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
        "reservedSystemCPUs": reserved,
    }


def uneven(*threads: int) -> dict[str, Any]:
    return machines.plain(machines.uneven(*threads))


def both(node: Player, documented: Player, machine: Any, pod: Any, **config: Any) -> list[Any]:
    """The CPUs of the first app container, or the text of the refusal: kubelet, documents."""
    found = []
    for player in (node, documented):
        (player.state_dir / "cpu_manager_state").unlink(missing_ok=True)
        player.start(machine, **config)
        answer = player.ask("admit", pod=pod)
        containers = answer["ok"]["containers"] if "ok" in answer else {}
        found.append(
            containers["app0"]["exclusive"] if containers else answer["refused"]["message"]
        )
    return found


def test_an_empty_shared_pool_is_refused_where_cpus_are_missing(
    documented: Player, pod: Pod
) -> None:
    everything = pod("u", "6")
    documented.start(**options("strict-cpu-reservation", reserved="0,4"))
    documented.admit(everything)
    refusal = ("cpu", "start cpu manager error: default cpuset cannot be empty")
    for config in (options(reserved="0,4"), options("strict-cpu-reservation", reserved="0")):
        assert documented.refusal(pods=[everything], **config) == refusal


def test_the_cpus_of_an_ended_init_container_do_not_keep_the_app_off_other_nodes(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    shape = machine(nodes=2, cores=8, sockets=2, smt=1)
    config = {"topologyManagerPolicy": "restricted", "reservedSystemCPUs": "0"}
    refusal = "Resources cannot be allocated with Topology locality"
    small_first = pod("u", "8", init=("1",))
    assert both(node, documented, shape, small_first, **config) == [refusal, "8-15"]
    assert both(node, documented, shape, pod("u", "7", init=("1",)), **config) == ["1-7"] * 2


def spread(player: Player, machine: Machine, pod: Pod, *before: dict[str, Any]) -> dict[str, str]:
    """What a pod gets whose four devices are on the four nodes, after the pods `before`."""
    config = options("distribute-cpus-across-numa") | {"topologyManagerPolicy": "best-effort"}
    player.start(machine(nodes=4, cores=8, sockets=2, smt=1), **config)
    ids = [{"id": f"d{node}", "numa": [node]} for node in range(4)]
    player.ask("devices", devices=[{"resource": "vendor.example/gpu", "ids": ids}])
    for one in before:
        player.admit(one)
    asks = pod("u", "12")
    asks["spec"]["containers"][0]["resources"]["limits"]["vendor.example/gpu"] = "4"
    return player.admit(asks)


def test_cpus_are_distributed_over_all_nodes_of_the_affinity(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    assert spread(node, machine, pod) == {"app0": "8-13,16-21"}
    assert spread(documented, machine, pod) == {"app0": "1-3,8-10,16-18,24-26"}
