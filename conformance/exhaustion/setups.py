"""The setups of lives: a kubelet's configuration, and the pods, files and devices to vary.

Each setup concerns one manager, so that few pods and calls reach all of its states. The Topology
Manager takes part in each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import ContainerSpec, DeviceSpec, PodSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.conformance.cases.schema import Devices, FileName
    from numaproof.protocol.messages import KubeletConfiguration

_NIC, _GPU = "vendor.example/nic", "vendor.example/gpu"
_PAGES = "hugepages-2Mi"


@dataclass(frozen=True)
class Setup:
    """A configuration, and what can happen on a node that has it.

    Attributes:
        config: the kubelet's configuration.
        pods: the pods to admit, each at most once at a time.
        file: the checkpoint to damage or delete.
        devices: the devices that plugins report at the first start.
        fewer_devices: the devices that plugins report if one of them is unhealthy.
    """

    config: KubeletConfiguration
    pods: tuple[PodSpec, ...]
    file: FileName
    devices: Devices = field(default_factory=dict)
    fewer_devices: Devices = field(default_factory=dict)


def _container(
    cpu: int | str, memory: str = "300Mi", others: Mapping[str, int | str] = MappingProxyType({})
) -> ContainerSpec:
    """A container with limits, and therefore with the same requests."""
    return ContainerSpec(limits={"cpu": cpu, "memory": memory, **others})


def _config(policy: str, scope: str, **others: Any) -> KubeletConfiguration:
    return {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "systemReserved": {"cpu": "1", "memory": "100Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        **others,
    }


_SCOPES = {
    "none": "container",
    "best-effort": "container",
    "restricted": "pod",
    "single-numa-node": "container",
}
"""The Topology Manager's policies, each with one scope."""

_FULL_CORES = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
_STATIC_MEMORY = {
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
}

_CPU_PODS = (
    PodSpec("one", {"app": _container(1)}),
    PodSpec("pair", {"first": _container(1), "second": _container(1)}),
    PodSpec("staged", {"app": _container(1)}, {"init": _container(1)}),
)
_MEMORY_PODS = (
    PodSpec("pages", {"app": _container("500m", others={_PAGES: "48Mi"})}),
    PodSpec(
        "pair",
        {"first": _container("500m"), "second": _container("500m", "400Mi")},
        {"init": _container("500m", "500Mi")},
    ),
    PodSpec("wide", {"app": _container("500m", "1100Mi")}),
)
"""The last pod needs the memory of two nodes."""

_DEVICE_PODS = (
    PodSpec("nic", {"app": _container("500m", others={_NIC: 1})}),
    PodSpec("gpu", {"app": _container("500m", others={_GPU: 1})}),
    PodSpec("both", {"app": _container("500m", others={_NIC: 1, _GPU: 1})}),
)
_DEVICES: Devices = {_NIC: ((0,),), _GPU: ((0,), (0,))}
_FEWER_DEVICES: Devices = {_NIC: (DeviceSpec((0,), healthy=False),), _GPU: ((0,), (0,))}


def _cpus(policy: str, **options: Any) -> Setup:
    return Setup(_config(policy, _SCOPES[policy], **options), _CPU_PODS, "cpu_manager_state")


def _memory(policy: str) -> Setup:
    config = _config(policy, _SCOPES[policy], **_STATIC_MEMORY)
    return Setup(config, _MEMORY_PODS, "memory_manager_state")


def _devices(policy: str) -> Setup:
    config = _config(policy, _SCOPES[policy])
    return Setup(config, _DEVICE_PODS, "cpu_manager_state", _DEVICES, _FEWER_DEVICES)


CPU_SETUPS = tuple(_cpus(policy, **options) for policy in _SCOPES for options in ({}, _FULL_CORES))
MEMORY_SETUPS = tuple(map(_memory, _SCOPES))
DEVICE_SETUPS = tuple(map(_devices, _SCOPES))
"""Each manager with every policy of the Topology Manager."""

FEW_CPU_SETUPS = (_cpus("none"), _cpus("single-numa-node", **_FULL_CORES))
FEW_MEMORY_SETUPS = (_memory("best-effort"), _memory("restricted"))
FEW_DEVICE_SETUPS = (_devices("single-numa-node"),)
"""A selection that covers every manager, option, policy and scope."""
