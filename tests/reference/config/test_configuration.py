from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player

STARTS = yaml.safe_load(Path(__file__).with_name("starts.yaml").read_bytes())


def rows(kind: str) -> list[Any]:
    """Starts of a kind, one for each of their releases."""
    return [
        pytest.param(release, row, id=f"{release}-{row.get('says', row['config'])}"[:70])
        for row in STARTS[kind]
        for release in row.get("releases", ["1.35"])
    ]


@pytest.mark.parametrize(("release", "row"), rows("refused"))
def test_a_start_is_refused_in_the_words_of_the_release(
    node: Player, release: str, row: dict[str, Any]
) -> None:
    found = node.refusal(release=release, **row["config"])
    assert found == (row.get("stage", "config"), row["says"])


@pytest.mark.parametrize(("release", "row"), rows("taken"))
def test_a_start_is_taken_that_others_refuse(
    node: Player, release: str, row: dict[str, Any]
) -> None:
    assert "ok" in node.start(release=release, **row["config"])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "100Mi"),
        ({"evictionHard": None}, "100Mi"),
        ({"evictionHard": {}}, "0"),
        ({"evictionHard": {}, "mergeDefaultEvictionSettings": True}, "100Mi"),
        ({"evictionHard": {"nodefs.available": "5%"}}, "0"),
        (
            {"evictionHard": {"memory.available": "50Mi"}, "mergeDefaultEvictionSettings": True},
            "50Mi",
        ),
    ],
)
def test_default_thresholds_hold_where_none_are_given_or_they_are_merged(
    node: Player, given: dict[str, Any], wanted: str
) -> None:
    stage, message = node.refusal(memoryManagerPolicy="Static", **given)
    told = f'type "memory" is not equal to the value "{wanted}"'
    if wanted == "0":
        told = "you should specify the system reserved memory"
    assert stage == "memory"
    assert told in message


@pytest.mark.parametrize("field", ["cpuManagerPolicy", "memoryManagerPolicy"])
def test_a_value_of_a_wrong_type_is_reported_before_what_validation_refuses(
    node: Player, field: str
) -> None:
    stage, message = node.refusal(**{field: 5, "topologyManagerScope": "node"})
    assert (stage, message.partition(" ")[0]) == ("config", "failed")
    assert f"KubeletConfiguration.{field} of type string" in message


@pytest.mark.parametrize("nothing", [None, ""])
def test_what_is_null_or_empty_has_its_default(node: Player, nothing: str | None) -> None:
    started = node.start(cpuManagerPolicy=nothing, topologyManagerPolicy=nothing, kubeReserved=None)
    assert started["ok"]["cpus"] == {"all": "0-7", "allocatable": ""}


@pytest.mark.parametrize(
    ("config", "allocatable"),
    [
        ({"kubeReserved": {"cpu": "1"}}, "1-7"),
        ({"kubeReserved": {"cpu": "1100m"}}, "1-3,5-7"),
        ({"kubeReserved": {"cpu": "500m"}, "systemReserved": {"cpu": "600m"}}, "1-3,5-7"),
        ({"kubeReserved": {"cpu": "0.0001"}}, "1-7"),
        ({"kubeReserved": {"cpu": "3"}}, "2-3,5-7"),
        ({"reservedSystemCPUs": "2,+3"}, "0-1,4-7"),
        ({"reservedSystemCPUs": "7", "kubeReserved": {"cpu": "not even one"}}, "0-6"),
    ],
)
def test_the_reservation_is_whole_cpus_by_ascending_core_or_the_named_ones(
    node: Player, config: dict[str, Any], allocatable: str
) -> None:
    assert node.start(**config)["ok"]["cpus"]["allocatable"] == allocatable


def test_cpus_reserved_by_name_are_looked_up_before_the_cpu_manager_is_made(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    empty = {**machine(), "num_cores": 0}
    assert node.refusal(machine=empty) == ("cpu", "could not detect number of cpus")
    assert node.refusal(machine=empty, reservedSystemCPUs="0") == (
        "config",
        "unable to discover CPU topology info: could not detect number of cpus",
    )


SOCKETS = {
    "topologyManagerPolicy": "single-numa-node",
    "cpuManagerPolicyOptions": {"align-by-socket": "true"},
    "featureGates": {"CPUManagerPolicyAlphaOptions": True},
}


def test_the_topology_manager_is_made_before_the_cpu_manager(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    options = {"x": "true"}
    assert node.refusal(**SOCKETS, topologyManagerPolicyOptions=options)[0] == "topology"
    assert node.refusal(machine=machine(nodes=9), **SOCKETS) == (
        "topology",
        "unsupported on machines with more than 8 NUMA Nodes",
    )
