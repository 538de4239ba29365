from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player

ROWS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_bytes())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["says"][:60])
def test_a_start_is_refused_in_the_words_of_the_kubelet(node: Player, row: dict[str, Any]) -> None:
    release = {"release": row["release"]} if "release" in row else {}
    found = node.refusal(**row["config"], **release)
    assert found == (row.get("stage", "config"), row["says"])


@pytest.mark.parametrize(
    ("release", "gates"),
    [
        ("1.34", {"AllAlpha": True, "AllBeta": False}),
        ("1.35", {"AllAlpha": True, "AllBeta": True}),
        ("1.35", {"PodLevelResources": False}),
    ],
)
def test_gates_that_depend_on_no_other_are_taken(
    node: Player, release: str, gates: dict[str, bool]
) -> None:
    assert "ok" in node.start(release=release, featureGates=gates, topologyManagerPolicy="none")


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


@pytest.mark.parametrize("period", ["10s", "1m30s", "-1s", "0", "1.5h", ".5s", "10us"])
def test_every_duration_of_go_is_taken_as_reconcile_period(node: Player, period: str) -> None:
    assert "ok" in node.start(cpuManagerReconcilePeriod=period)


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
