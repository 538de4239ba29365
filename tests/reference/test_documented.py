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


HYBRID = (2, 2, 1, 1, 1)
FULL = "full-pcpus-only"


def test_on_hybrid_cores_a_request_is_a_multiple_of_the_largest_core(
    node: Player, documented: Player, pod: Pod
) -> None:
    refusal = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"
    found = both(node, documented, uneven(*HYBRID), pod("u", "3"), **options(FULL, reserved="0-1"))
    assert found == ["4-6", refusal]


def test_on_hybrid_cores_no_core_is_broken_where_small_ones_do_not_add_up(
    node: Player, documented: Player, pod: Pod
) -> None:
    machine, config = uneven(2, 2, 2, 1), options(FULL, reserved="0-1")
    assert both(node, documented, machine, pod("u", "2"), **config) == ["2,6", "2-3"]


def test_cores_of_three_threads_beside_those_of_two_are_not_handed_out_in_part(
    node: Player, documented: Player, pod: Pod
) -> None:
    machine, config = uneven(3, 2, 2), options(FULL, reserved="0-2")
    found = both(node, documented, machine, pod("u", "3"), **config)
    assert found[1] == "SMT Alignment Error: 3 CPUs cannot be whole cores"


def test_the_sibling_of_a_used_cpu_does_not_count_as_a_free_core(
    documented: Player, pod: Pod
) -> None:
    machine, single = uneven(2, 2, 2), pod("u", "1")
    documented.start(machine, **options(reserved="0-1"))
    assert documented.admit(single) == {"app0": "2"}
    documented.start(machine, pods=[single], **options(FULL, reserved="0-1"))
    assert documented.ask("admit", pod=pod("v", "4"))["refused"]["message"] == (
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, "
        "requested CPUs = 4, CPUs per core = 2"
    )
    assert documented.admit(pod("v", "2")) == {"app0": "4-5"}


def test_whole_cores_of_an_ended_init_container_are_free_for_its_pod(
    node: Player, documented: Player, pod: Pod
) -> None:
    machine, config = uneven(2, 2, 2), options(FULL, reserved="0-1")
    found = both(node, documented, machine, pod("u", "4", init=("4",)), **config)
    assert found[0].startswith("SMT Alignment Error: not enough free physical CPUs")
    assert found[1] == "2-5"


def test_an_init_container_that_ended_before_a_restart_is_not_served_again(
    documented: Player, pod: Pod
) -> None:
    first = pod("u", "2", init=("2",))
    documented.start()
    held = documented.admit(first)
    documented.ask("remove", uid="u", container="init0")
    documented.admit(pod("v", "5"))
    documented.start(pods=[first, pod("v", "5")])
    assert documented.admit(first) == held | {"init0": ""}


def test_a_shared_pool_that_exclusive_cpus_used_up_survives_a_restart(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    config, everything = options("strict-cpu-reservation", reserved="0,4"), pod("u", "6")
    assert both(node, documented, machine(), everything, **config) == ["1-3,5-7"] * 2
    assert "cpus" in documented.start(pods=[everything], **config)["ok"]
    assert documented.admit(everything) == {"app0": "1-3,5-7"}
    assert node.refusal(pods=[everything], **config) == (
        "cpu",
        "start cpu manager error: default cpuset cannot be empty",
    )


def test_an_empty_shared_pool_is_refused_where_cpus_are_missing(
    documented: Player, pod: Pod
) -> None:
    everything = pod("u", "6")
    documented.start(**options("strict-cpu-reservation", reserved="0,4"))
    documented.admit(everything)
    refusal = ("cpu", "start cpu manager error: default cpuset cannot be empty")
    for config in (options(reserved="0,4"), options("strict-cpu-reservation", reserved="0")):
        assert documented.refusal(pods=[everything], **config) == refusal


def test_half_used_cores_do_not_push_a_fitting_request_out_of_their_uncore_cache(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    shape, config = machine(cores=8, uncore=4), options("prefer-align-cpus-by-uncorecache")
    assert both(node, documented, shape, pod("u", "2"), **config) == ["4,12", "1,9"]
    assert both(node, documented, shape, pod("u", "7"), **config) == ["1-3,8-11", "1-3,8-11"]
    assert both(node, documented, shape, pod("u", "8"), **config) == ["4-7,12-15"] * 2


def test_cpus_are_spread_over_cores_however_the_threads_are_numbered(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    config = options("distribute-cpus-across-cores")
    adjacent = uneven(2, 2, 2, 2)
    assert both(node, documented, adjacent, pod("u", "3"), **config) == ["1-3", "1-2,4"]
    assert both(node, documented, adjacent, pod("u", "5"), **config) == ["1-5", "1-4,6"]
    assert both(node, documented, machine(), pod("u", "5"), **config) == ["1-5", "1-5"]


def test_cpus_are_spread_over_the_cores_of_all_sockets(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    shape, config = machine(nodes=2, cores=4, sockets=2), options("distribute-cpus-across-cores")
    assert both(node, documented, shape, pod("u", "5"), **config) == ["1-3,8-9", "1-4,8"]


def test_spreading_counts_the_cores_of_reused_cpus(documented: Player, pod: Pod) -> None:
    documented.start(uneven(2, 2, 2, 2), **options("distribute-cpus-across-cores"))
    held = documented.admit(pod("u", "3", init=("1",)))
    assert held == {"init0": "1", "app0": "1-2,4"}


def test_distribution_over_nodes_stays_in_a_socket_that_holds_the_request(
    node: Player, documented: Player, machine: Machine, pod: Pod
) -> None:
    names = ("distribute-cpus-across-numa", "align-by-socket")
    shape, config = machine(nodes=4, sockets=2, smt=1), options(*names)
    assert both(node, documented, shape, pod("u", "6"), **config) == ["4-6,8-10", "8-10,12-14"]
    assert both(node, documented, shape, pod("u", "10"), **config) == ["4-10,12-14"] * 2


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


def test_cpus_are_distributed_over_fewer_nodes_where_one_is_full(
    documented: Player, machine: Machine, pod: Pod
) -> None:
    assert spread(documented, machine, pod, pod("v", "7")) == {"app0": "8-13,16-21"}
