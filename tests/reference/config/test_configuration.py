from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference.conftest import Player

VALIDATE = "failed to validate kubelet configuration, error: "
INVALID = f"{VALIDATE}invalid configuration: "
NAMED = f"{INVALID}unable to parse reservedSystemCPUs (--reserved-cpus) "
FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"topologyManagerPolicy": "bogus"},
            (
                f"{INVALID}topologyManagerPolicy (--topology-manager-policy) "
                '"bogus" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]'
            ),
        ),
        (
            {"topologyManagerScope": "x", "reservedSystemCPUs": "1-0"},
            (
                f"{VALIDATE}[invalid configuration: topologyManagerScope "
                '(--topology-manager-scope) "x" must be one of: "container", or "pod", invalid '
                "configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 1-0, "
                'error: invalid range "1-0" (1 > 0)]'
            ),
        ),
        (
            {"reservedSystemCPUs": "0-x"},
            (f'{NAMED}0-x, error: strconv.Atoi: parsing "x": invalid syntax'),
        ),
        (
            {"reservedSystemCPUs": "99999999999999999999"},
            (
                f"{NAMED}"
                "99999999999999999999, error: strconv.Atoi: parsing "
                '"99999999999999999999": value out of range'
            ),
        ),
        (
            {"reservedSystemCPUs": "0", "systemReservedCgroup": "/a"},
            (
                f"{INVALID}can't use reservedSystemCPUs (--reserved-cpus) with "
                "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup "
                "(--kube-reserved-cgroup)"
            ),
        ),
        ({"reservedSystemCPUs": "9,0"}, "reserved-cpus: 9,0 is not a subset of online-cpus: 0-7"),
        (
            {"kubeReserved": {"cpu": "-1"}},
            (
                '--kube-reserved value failed to parse: resource quantity for "cpu" cannot be '
                "negative: -1"
            ),
        ),
        (
            {"systemReserved": {"cpu": "x"}},
            (
                "--system-reserved value failed to parse: failed to parse quantity "
                f'"x" for "cpu" resource: {FORM}'
            ),
        ),
        (
            {"kubeReserved": {"gpu": "1"}},
            '--kube-reserved value failed to parse: cannot reserve "gpu" resource',
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]},
            (f'{INVALID}reserved memory may not be zero for NUMA node 0 and resource "memory"'),
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]},
            (
                f'{INVALID}the limit type "cpu" for NUMA node 0 is not '
                "supported, only [memory hugepages-<HugePageSize>] is accepted"
            ),
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}] * 2},
            (
                f"{INVALID}the reserved memory has a duplicate value for NUMA "
                'node 0 and resource "memory"'
            ),
        ),
        ({"evictionHard": {"foo": "1Gi"}}, "unsupported eviction signal foo"),
        ({"evictionHard": {"pid.available": None}}, FORM),
        (
            {"evictionHard": {"foo": "1Gi"}, "kubeReserved": {"gpu": "1"}},
            '--kube-reserved value failed to parse: cannot reserve "gpu" resource',
        ),
        (
            {"evictionHard": {"foo": "1Gi"}, "topologyManagerPolicyOptions": {"x": "1"}}
            | {"featureGates": {"TopologyManagerPolicyOptions": False}},
            "unsupported eviction signal foo",
        ),
        (
            {"mergeDefaultEvictionSettings": "x"},
            (
                "failed to decode: json: cannot unmarshal string into Go struct field "
                "KubeletConfiguration.mergeDefaultEvictionSettings of type bool"
            ),
        ),
        ({"cpuManagerReconcilePeriod": "x"}, 'failed to decode: time: invalid duration "x"'),
        ({"cpuManagerReconcilePeriod": None}, 'failed to decode: time: invalid duration ""'),
        (
            {"cpuManagerReconcilePeriod": "1m30"},
            'failed to decode: time: missing unit in duration "1m30"',
        ),
        ({"featureGates": {"NoSuchGate": True}}, "unrecognized feature gate: NoSuchGate"),
        (
            {"featureGates": {"MemoryManager": False}},
            "cannot set feature gate MemoryManager to false, feature is locked to true",
        ),
    ],
)
def test_the_validation_of_the_kubelet_speaks_first(
    node: Player, config: dict[str, Any], message: str
) -> None:
    assert node.refusal(**config) == ("config", message)


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


@pytest.mark.parametrize(
    ("release", "gates", "problem"),
    [
        ("1.34", {"AllAlpha": True, "AllBeta": False}, None),
        ("1.35", {"AllAlpha": True, "AllBeta": True}, None),
        ("1.35", {"PodLevelResources": False}, None),
        (
            "1.36",
            {"PodLevelResources": False},
            (
                "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that "
                "are disabled: [PodLevelResources]"
            ),
        ),
        (
            "1.35",
            {
                "InPlacePodLevelResourcesVerticalScaling": True,
                "PodLevelResources": False,
                "StorageVersionAPI": True,
                "APIServerIdentity": False,
            },
            (
                "[InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features "
                "that are disabled: [NodeDeclaredFeatures PodLevelResources], StorageVersionAPI "
                "is enabled, but depends on features that are disabled: [APIServerIdentity]]"
            ),
        ),
    ],
)
def test_from_1_35_a_gate_needs_the_gates_that_it_depends_on(
    node: Player, release: str, gates: dict[str, bool], problem: str | None
) -> None:
    answer = node.start(release=release, featureGates=gates, topologyManagerPolicy="none")
    assert answer.get("refused") == (problem and {"stage": "config", "message": problem})


def test_gates_speak_before_the_validation_does(node: Player) -> None:
    found = node.refusal(featureGates={"NoSuchGate": True}, topologyManagerPolicy="bogus")
    assert found == ("config", "unrecognized feature gate: NoSuchGate")


@pytest.mark.parametrize(
    ("field", "value", "found", "wanted"),
    [
        ("cpuManagerPolicy", 5, "number", "string"),
        ("cpuManagerReconcilePeriod", 5, "number", "string"),
        ("cpuManagerPolicyOptions", [], "array", "map[string]string"),
        ("cpuManagerPolicyOptions", {"full-pcpus-only": True}, "bool", "string"),
        ("cpuManagerReconcilePeriod", [], "array", "string"),
        ("kubeReserved", {"cpu": 1}, "number", "string"),
        ("featureGates", "x", "string", "map[string]bool"),
        ("featureGates", {"CPUManagerPolicyBetaOptions": "x"}, "string", "bool"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_as_go_names_it(
    node: Player, field: str, value: Any, found: str, wanted: str
) -> None:
    assert node.refusal(**{field: value}) == (
        "config",
        (
            f"failed to decode: json: cannot unmarshal {found} into Go struct field "
            f"KubeletConfiguration.{field} of type {wanted}"
        ),
    )


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


@pytest.mark.parametrize("reserved", [{}, {"cpu": "0"}, {"memory": "1Gi"}])
def test_the_static_policy_needs_a_reservation(node: Player, reserved: dict[str, str]) -> None:
    assert node.refusal(kubeReserved=reserved) == (
        "cpu",
        "[cpumanager] unable to determine reserved CPU resources for static policy",
    )


def test_more_than_there_is_cannot_be_reserved(node: Player) -> None:
    assert node.refusal(kubeReserved={"cpu": "9"}) == (
        "cpu",
        (
            "new static policy error: [cpumanager] unable to reserve the required amount of CPUs "
            "(size of  did not equal 9)"
        ),
    )


def test_an_unknown_policy_is_refused(node: Player) -> None:
    assert node.refusal(cpuManagerPolicy="Static") == ("cpu", 'unknown policy: "Static"')
    assert node.refusal(memoryManagerPolicy="x") == ("memory", 'unknown policy: "x"')
    windows = 'policy "BestEffort" is not available for platform "linux"'
    assert node.refusal(memoryManagerPolicy="BestEffort") == ("memory", windows)


def test_the_policy_none_takes_no_options(node: Player) -> None:
    options = {"strict-cpu-reservation": "true", "a": "b"}
    assert node.refusal(cpuManagerPolicy="none", cpuManagerPolicyOptions=options) == (
        "cpu",
        (
            "new none policy error: None policy: received unsupported "
            "options=map[a:b strict-cpu-reservation:true]"
        ),
    )


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


def test_the_cpu_manager_refuses_what_does_not_go_with_the_topology_policy(node: Player) -> None:
    assert node.refusal(**SOCKETS) == (
        "cpu",
        (
            "new static policy error: Topolgy manager single-numa-node policy is incompatible "
            "with CPUManager align-by-socket policy option"
        ),
    )


def test_the_topology_manager_is_made_before_the_cpu_manager(
    node: Player, machine: Callable[..., dict[str, Any]]
) -> None:
    options = {"x": "true"}
    assert node.refusal(**SOCKETS, topologyManagerPolicyOptions=options)[0] == "topology"
    assert node.refusal(machine=machine(nodes=9), **SOCKETS) == (
        "topology",
        "unsupported on machines with more than 8 NUMA Nodes",
    )
