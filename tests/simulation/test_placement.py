"""Containers without exclusive CPUs, and resources outside an affinity, are explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders.devices import NIC, device_resource
from builders.machines import discover_profile, regular
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.simulation import admission
from numaproof.simulation.admission import Question
from numaproof.simulation.placement import OutsideAffinity
from numaproof.simulation.pods import DescribedPod

if TYPE_CHECKING:
    from pathlib import Path

STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


def container(name: str, requests: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests, "limits": limits}}


def guaranteed(name: str, cpu: object) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Mi"}
    return container(name, amounts, amounts)


def admitted(
    folder: Path, config: dict[str, Any], containers: list[dict[str, Any]], **spec: Any
) -> admission.PodResult:
    metadata = {"name": "a", "uid": "a"}
    manifest = {"metadata": metadata, "spec": {"containers": containers, **spec}}
    question = Question(discover_profile("laptop-4c8t"), config, "1.37")
    (result,) = admission.admit_all(question, [DescribedPod("a", manifest)], str(folder)).pods
    return result


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            container("b", {"cpu": "250m", "memory": 1}, {"cpu": "500m", "memory": 1}),
            "container b requests 250m CPU, but its limit is 500m",
        ),
        (
            container("b", {"cpu": 1, "memory": 1}, {"cpu": 1, "memory": 2}),
            "container b requests 1 memory, but its limit is 2",
        ),
        (container("b", {}, {"memory": 1}), "container b has no CPU limit"),
        (container("b", {}, {}), "container b has no CPU or memory limit"),
    ],
)
def test_the_container_that_costs_a_pod_its_class_is_named(
    tmp_path: Path, other: dict[str, Any], reason: str
) -> None:
    result = admitted(tmp_path, STATIC, [guaranteed("a", 2), other])
    assert result.shared["a"] == f"the pod is Burstable, not Guaranteed: {reason}"


def test_a_fraction_of_a_cpu_is_named(tmp_path: Path) -> None:
    result = admitted(tmp_path, STATIC, [guaranteed("a", "1500m"), guaranteed("b", 2)])
    assert result.shared == {
        "a": "1500m is not a whole number of CPUs, so they come from the shared pool"
    }


def test_pod_level_resources_that_are_not_equal_are_named(tmp_path: Path) -> None:
    resources = {"requests": {"cpu": 1, "memory": 1}, "limits": {"cpu": 2, "memory": 1}}
    result = admitted(tmp_path, STATIC, [guaranteed("a", 1)], resources=resources)
    reason = "the pod requests 1 CPU, but its limit is 2"
    assert result.shared == {"a": f"the pod is Burstable, not Guaranteed: {reason}"}


def test_containers_of_pods_with_pod_level_cpus_are_explained(tmp_path: Path) -> None:
    limits = {"cpu": 4, "memory": "64Mi"}
    resources = {"requests": limits, "limits": limits}
    result = admitted(tmp_path, STATIC, [container("a", {}, {})], resources=resources)
    assert result.shared == {"a": "the pod has pod-level resources"}


def test_without_the_static_policy_nothing_is_explained(tmp_path: Path) -> None:
    assert admitted(tmp_path, {}, [guaranteed("a", "1500m")]).shared == {}


def test_resources_inside_the_affinity_are_not_marked(tmp_path: Path) -> None:
    config = {**STATIC, "topologyManagerPolicy": "restricted"}
    assert admitted(tmp_path, config, [guaranteed("a", 2)]).outside == ()


BY_SOCKET = {
    **STATIC,
    "topologyManagerPolicy": "restricted",
    "cpuManagerPolicyOptions": {
        "align-by-socket": "true",
        "distribute-cpus-across-numa": "true",
    },
    "featureGates": {"CPUManagerPolicyAlphaOptions": True},
}


def test_cpus_outside_the_affinity_are_marked(tmp_path: Path) -> None:
    nics = {f"nic{node}": [node] for node in (1, 4, 5, 6, 7)}
    question = Question(
        regular(nodes=8, cores=4, threads=1, sockets=2),
        BY_SOCKET,
        "1.37",
        devices=(device_resource(**nics),),
    )
    amounts = {"cpu": 20, "memory": "64Mi", NIC: 5}
    spec = {"containers": [container("a", amounts, amounts)]}
    pod = DescribedPod("a", {"metadata": {"name": "a", "uid": "a"}, "spec": spec})
    (result,) = admission.admit_all(question, [pod], str(tmp_path)).pods
    held = result.containers["a"]  # type: ignore[index] # it is admitted
    assert held.affinity.numa == NUMASet([1, 4, 5, 6, 7])
    assert result.outside == (OutsideAffinity("a", "cpu", NUMASet([2, 3])),)


def test_cpus_of_an_init_container_that_ends_are_reused(tmp_path: Path) -> None:
    first = [guaranteed("large", 4), {**guaranteed("sidecar", 2), "restartPolicy": "Always"}]
    result = admitted(tmp_path, STATIC, [guaranteed("main", 1)], initContainers=first)
    assert result.containers
    held = {name: one.exclusive.mask for name, one in result.containers.items()}
    later = (held["sidecar"] | held["main"]) & held["large"]
    assert later
    assert result.reused_cpus == {"large": CPUSet.from_mask(later)}
