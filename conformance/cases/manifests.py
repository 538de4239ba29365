"""Pods and machines as a case writes them, made into what the protocol carries."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.messages import Device, DeviceResource, KubeletConfiguration, Pod
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.conformance.cases.schema import ContainerSpec, MemoryChange, PodSpec
    from numaproof.protocol.machine import MachineInfo, Node

_QUANTITY = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
)
_LONGEST = 500
"""Characters of a quantity."""

_SHOWN = 60
"""Characters of a wrong amount that a message shows."""

_IMAGE = "registry.example/app:1"


def manifest(spec: PodSpec) -> Pod:
    """The v1.Pod manifest of a pod that a case describes; its uid is ``uid-NAME``."""
    body = dict(spec.spec)
    if spec.containers:
        body["containers"] = [_container(*item) for item in spec.containers.items()]
    if spec.init:
        body["initContainers"] = [_container(*item) for item in spec.init.items()]
    if spec.resources:
        body["resources"] = {kind: _texts(spec.resources[kind]) for kind in spec.resources}
    pod: Pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": spec.pod, "namespace": "default", "uid": uid(spec.pod)},
        "spec": body,
    }
    if spec.status:
        pod["status"] = spec.status
    _check(body)
    return pod


def _check(spec: dict[str, Any]) -> None:
    """Checks the shape of what a case may write as it likes.

    Raises:
        ValueError: a list, a mapping or a text is something else; names the field.
    """
    _check_resources(spec, "spec")
    for key in ("initContainers", "containers"):
        listed = spec.get(key)
        if listed is not None and not isinstance(listed, list | tuple):
            raise ValueError(f"spec.{key} must be a list")
        for number, container in enumerate(listed or ()):
            where = f"spec.{key}[{number}]"
            name = container.get("name") if isinstance(container, dict) else None
            if not (name and isinstance(name, str)):
                raise ValueError(f"{where} must be a mapping with a name")
            _check_resources(container, where)


def _check_resources(holder: dict[str, Any], where: str) -> None:
    resources = holder.get("resources")
    places = {f"{where}.resources": resources}
    if isinstance(resources, dict):
        places |= {f"{where}.resources.{kind}": one for kind, one in resources.items()}
    for place, value in places.items():
        # A claim is a list, and no manager reads it.
        if value is not None and not isinstance(value, dict) and not place.endswith(".claims"):
            raise ValueError(f"{place} must be a mapping")
    for kind in _QUANTITIES:
        for resource, amount in (places.get(f"{where}.resources.{kind}") or {}).items():
            _check_quantity(amount, f"{where}.resources.{kind}.{resource}")


_QUANTITIES = ("requests", "limits")


def _check_quantity(amount: Any, place: str) -> None:
    """Checks an amount that the API server would refuse before any kubelet saw it."""
    is_scalar = isinstance(amount, str | int | float) and not isinstance(amount, bool)
    # No longer than any that is computed with.
    if amount is None or (
        is_scalar and len(str(amount)) <= _LONGEST and _QUANTITY.fullmatch(str(amount))
    ):
        return
    shown = json.dumps(amount)[:_SHOWN]
    raise ValueError(f'{place}: expected a quantity such as "2" or "1Gi", got {shown}')


def uid(pod: str) -> str:
    """The uid of the pod of that name."""
    return f"uid-{pod}"


def pod_name(uid: str) -> str:
    """The name of the pod that has that uid: the inverse of `uid`."""
    return uid.removeprefix("uid-")


def containers(pod: Pod) -> tuple[str, ...]:
    """The names of a pod's containers, init containers first."""
    spec = pod["spec"]
    both = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return tuple(one["name"] for one in both)


def _container(name: str, spec: ContainerSpec) -> dict[str, Any]:
    resources = {
        kind: _texts(amounts)
        for kind, amounts in (("requests", spec.requests), ("limits", spec.limits))
        if amounts
    }
    made: dict[str, Any] = {"name": name, "image": _IMAGE, "resources": resources}
    if spec.restartPolicy:
        made["restartPolicy"] = spec.restartPolicy
    return made


_MAPS_OF_TEXT = (
    "kubeReserved",
    "systemReserved",
    "evictionHard",
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
)


def texts_where_due(config: KubeletConfiguration) -> KubeletConfiguration:
    """A configuration whose amounts are texts, as its form asks for, also where counted."""
    maps: dict[str, Any] = {
        key: _texts(config[key]) for key in _MAPS_OF_TEXT if isinstance(config.get(key), dict)
    }
    if isinstance(config.get("reservedMemory"), list):
        maps["reservedMemory"] = [_reservation(one) for one in config["reservedMemory"]]
    return {**config, **maps}


def _reservation(reservation: Any) -> Any:
    if isinstance(reservation, dict) and isinstance(reservation.get("limits"), dict):
        return {**reservation, "limits": _texts(reservation["limits"])}
    return reservation


def _texts(amounts: dict[str, Any]) -> dict[str, Any]:
    return {
        resource: str(amount) if type(amount) is int else amount
        for resource, amount in amounts.items()
    }


def device_lists(
    devices: dict[str, Any], preferred: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> tuple[DeviceResource, ...]:
    """What device plugins report of the devices that a case describes, with no expression left.

    Ids are ``d0``, ``d1`` and so on in the order of the case; `preferred` are those that the plugin
    of a resource would have allocated, in order.

    Raises:
        ValueError: the value of an expression is not a list of devices.
    """
    return tuple(
        DeviceResource(
            name,
            tuple(_device(number, one) for number, one in enumerate(ones)),
            preferred.get(name, ()),
        )
        for name, ones in msgspec.convert(devices, _Devices).items()
    )


class _WrittenDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device with no expression left."""

    numa: tuple[int, ...] | None = None
    healthy: bool = True


_Devices = dict[str, tuple[_WrittenDevice | tuple[int, ...] | None, ...]]


def _device(number: int, spec: _WrittenDevice | tuple[int, ...] | None) -> Device:
    form = spec if isinstance(spec, _WrittenDevice) else _WrittenDevice(spec)
    nodes = None if form.numa is None else NUMASet(form.numa)
    return Device(f"d{number}", nodes, form.healthy)


def without_cpus(machine: MachineInfo, offline: CPUSet) -> MachineInfo:
    """The machine as discovered after the kernel has taken CPUs offline.

    A core whose threads are all gone is gone too; a node stays, for its memory.
    """
    if not offline:
        return machine
    replace = msgspec.structs.replace
    nodes = []
    for node in machine.topology or ():
        left = [
            replace(core, thread_ids=tuple(c for c in core.thread_ids or () if c not in offline))
            for core in node.cores or ()
        ]
        nodes.append(replace(node, cores=tuple(core for core in left if core.thread_ids)))
    cores = [core for node in nodes for core in node.cores or ()]
    gone = sum(len(node.cores or ()) for node in machine.topology or ()) - len(cores)
    return replace(
        machine,
        num_cores=sum(len(core.thread_ids or ()) for core in cores),
        num_physical_cores=machine.num_physical_cores - gone,
        topology=tuple(nodes),
    )


def with_memory(machine: MachineInfo, changes: Iterable[MemoryChange]) -> MachineInfo:
    """The machine with other amounts of memory on some nodes; its total stays the sum.

    Raises:
        ValueError: the machine has no such node, or the node no huge pages of such a size.
    """
    for change in changes:
        nodes = {node.node_id: node for node in machine.topology or ()}
        before = nodes.get(int(change.node))
        if before is None:
            raise ValueError(f"the machine has no node {change.node}")
        after = _node_with(before, change)
        machine = msgspec.structs.replace(
            machine,
            memory_capacity=machine.memory_capacity + after.memory - before.memory,
            topology=tuple(after if node is before else node for node in nodes.values()),
        )
    return machine


def _node_with(node: Node, change: MemoryChange) -> Node:
    amount = int(change.bytes)
    if change.hugepages is None:
        return msgspec.structs.replace(node, memory=amount)
    size = int(change.hugepages)
    pools = node.hugepages or ()
    if all(pool.page_size != size for pool in pools):
        raise ValueError(f"node {node.node_id} has no huge pages of {size} KiB")
    changed = (
        msgspec.structs.replace(pool, num_pages=amount // (size * 1024))
        if pool.page_size == size
        else pool
        for pool in pools
    )
    return msgspec.structs.replace(node, hugepages=tuple(changed))
