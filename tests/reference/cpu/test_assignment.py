from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof.reference.cpu.distribution import standard_deviation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player


def assign(player: Player, machine: dict[str, Any], count: int, **more: Any) -> str:
    every = f"0-{machine['num_cores'] - 1}"
    options = {name.replace("_", "-"): "true" for name in more.pop("options", ())}
    answer = player.ask(
        "assign",
        machine=machine,
        available=more.pop("available", every),
        count=count,
        options=options,
        **more,
    )
    found: str = answer["ok"]["cpus"] if "ok" in answer else answer["refused"]["message"]
    return found


@pytest.mark.parametrize(
    ("shape", "available", "count", "cpus"),
    [
        ({}, "0-7", 0, ""),
        ({}, "0-7", -1, ""),
        ({}, "0-7", 2, "0,4"),
        ({}, "0-7", 3, "0-1,4"),
        ({}, "0-1,4,6-7", 1, "1"),
        ({}, "0-2,4-5", 2, "0,4"),
        ({"nodes": 2, "sockets": 2}, "0-15", 8, "0-3,8-11"),
        ({"nodes": 2, "sockets": 2}, "1-15", 8, "4-7,12-15"),
        ({"nodes": 2, "sockets": 2}, "1-15", 2, "1,9"),
        ({"nodes": 4, "sockets": 2}, "0-31", 16, "0-7,16-23"),
        ({"nodes": 4, "sockets": 2}, "1-31", 16, "8-15,24-31"),
        ({"nodes": 1, "sockets": 2, "cores": 4}, "0-7", 9, None),
    ],
)
def test_requests_are_packed_from_the_largest_unit_to_the_smallest(
    node: Player,
    machine: Callable[..., dict[str, Any]],
    shape: dict[str, int],
    available: str,
    count: int,
    cpus: str | None,
) -> None:
    refusal = f"not enough cpus available to satisfy request: requested={count}, available=8"
    found = assign(node, machine(**shape), count, available=available)
    assert found == (refusal if cpus is None else cpus)


@pytest.mark.parametrize(
    ("release", "available", "count", "cpus"),
    [
        ("1.35", "0-15", 4, "0-1,8-9"),
        ("1.35", "1-15", 4, "2-3,10-11"),
        ("1.35", "2-15", 5, "2-3,8,10-11"),
        ("1.35", "0,2-7,10-15", 1, "0"),
        ("1.35", "0-1,3,8-9,11", 3, "0-1,8"),
        ("1.33", "0-1,3,8-9,11", 1, "0"),
        ("1.35", "0-1,3,8-9,11", 1, "3"),
        ("1.33", "0-15", 4, "0-1,8-9"),
    ],
)
def test_uncore_caches_are_filled_with_odd_requests_since_1_34(
    node: Player,
    machine: Callable[..., dict[str, Any]],
    release: str,
    available: str,
    count: int,
    cpus: str,
) -> None:
    found = assign(
        node,
        machine(cores=8, uncore=2),
        count,
        available=available,
        kubernetes=release,
        options=["prefer_align_cpus_by_uncorecache"],
    )
    assert found == cpus


def test_a_request_goes_to_the_first_cache_that_has_room_for_it_as_documented(
    documented: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    options = ["prefer_align_cpus_by_uncorecache"]
    shape = machine(cores=8, uncore=4)
    assert assign(documented, shape, 6, available="3-15", options=options) == "4-6,12-14"
    assert assign(documented, shape, 5, available="3-15", options=options) == "3,8-11"


def test_spreading_over_cores_takes_threads_of_different_cores(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    assert assign(node, machine(), 3, options=["distribute_cpus_across_cores"]) == "0-2"


@pytest.mark.parametrize(
    ("nodes", "count", "cpus"),
    [
        (2, 4, "0-3"),
        (2, 8, "0-7"),
        (2, 10, "0-4,8-12"),
        (4, 24, "0-23"),
        (2, 9, "0-4,8-11"),
    ],
)
def test_an_even_share_comes_from_the_fewest_nodes(
    node: Player, machine: Callable[..., dict[str, Any]], nodes: int, count: int, cpus: str
) -> None:
    shape = machine(nodes=nodes, cores=8, smt=1)
    assert assign(node, shape, count, options=["distribute_cpus_across_numa"]) == cpus


def test_a_chosen_combination_of_four_nodes_is_overwritten_by_the_last_one_looked_at(
    node: Player, documented: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    shape, option = machine(nodes=6, cores=2, smt=1), ["distribute_cpus_across_numa"]
    assert assign(node, shape, 8, options=option) == "0-5,10-11"
    assert assign(documented, shape, 8, options=option) == "0-7"


def test_reserved_threads_that_break_cores_do_not_make_the_distribution_endless(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    shape = machine(nodes=4, cores=4)
    found = assign(
        node,
        shape,
        22,
        available="1-3,5-7,9-11,13-31",
        options=["distribute_cpus_across_numa", "full_pcpus_only"],
    )
    assert len(found) > 10
    assert "error" not in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no-such": "true"}, 'unknown CPU Manager Policy option: "no-such"'),
        (
            {"align-by-socket": "banana"},
            (
                'bad value for option "align-by-socket": strconv.ParseBool: '
                'parsing "banana": invalid syntax'
            ),
        ),
        *(
            (
                {one: "true", other: "T"},
                f"static policy options {one} and {other} can not be used at the same time",
            )
            for one, other in (
                ("full-pcpus-only", "distribute-cpus-across-cores"),
                ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
                ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
                ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
            )
        ),
    ],
)
def test_options_that_cannot_be_are_refused_at_the_cpu_stage(
    node: Player,
    machine: Callable[..., dict[str, Any]],
    options: dict[str, str],
    message: str,
) -> None:
    answer = node.ask("assign", machine=machine(), available="0-7", count=1, options=options)
    assert answer == {"refused": {"stage": "cpu", "message": message}}


def test_options_are_hidden_by_the_gate_of_their_maturity(node: Player) -> None:
    def refused(option: str, release: str, **gates: bool) -> str:
        answer = node.start(
            release=release, cpuManagerPolicyOptions={option: "true"}, featureGates=gates
        )
        return str(answer.get("refused", {}).get("message", ""))

    uncore = "prefer-align-cpus-by-uncorecache"
    assert f'Alpha-level Options not enabled, but option "{uncore}"' in refused(uncore, "1.33")
    assert "Alpha-level" in refused("align-by-socket", "1.36", AllBeta=True)
    assert refused(uncore, "1.34") == ""
    assert "Beta-level" in refused(uncore, "1.35", AllBeta=False)
    assert refused(uncore, "1.36", CPUManagerPolicyBetaOptions=False) == ""


def test_align_by_socket_needs_as_many_nodes_as_sockets(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    found = assign(node, machine(sockets=2), 1, options=["align_by_socket"])
    assert found == (
        "Align by socket is not compatible with hardware where number of sockets are more than "
        "number of NUMA"
    )


def test_a_core_without_threads_and_a_machine_without_cpus_have_no_topology(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    shape = machine()
    assert assign(node, {**shape, "num_cores": 0}, 1, available="0") == (
        "could not detect number of cpus"
    )
    shape["topology"][0]["cores"][0]["thread_ids"] = None
    assert assign(node, shape, 1) == "no cpus provided"
    shape["topology"][0]["cores"][0]["thread_ids"] = [0, 0]
    assert assign(node, shape, 1) == "cpus provided are not unique"


def test_totals_that_contradict_each_other_do_not_divide_by_zero(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    shape = {**machine(), "num_cores": 1, "num_sockets": 0}
    options = ["full_pcpus_only", "prefer_align_cpus_by_uncorecache"]
    assert assign(node, shape, 2, available="0-3", options=options) == "0-1"


def test_the_standard_deviation_is_rounded_half_away_from_zero() -> None:
    assert standard_deviation([1, 2]) == 0.5
    assert standard_deviation([0, 0, 1]) == 0.471
    assert standard_deviation([5, 5, 5]) == 0
