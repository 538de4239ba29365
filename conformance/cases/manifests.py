"""Converts pods and machines from the form used in cases to the protocol's form."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.schema import device_id
from numaproof.protocol.messages import SOURCE, Device, DeviceResource, KubeletConfiguration, Pod
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numaproof.conformance.cases.schema import ContainerSpec, MemoryChange, PodSpec
    from numaproof.protocol.machine import MachineInfo, Node

_QUANTITY = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
)
_LONGEST = 500
"""The maximum length of a quantity."""

_SHOWN = 60
"""The maximum length of an invalid quantity in messages."""

_IMAGE = "registry.example/app:1"


def manifest(spec: PodSpec) -> Pod:
    """Creates a v1.Pod manifest from a pod in a case; its uid is ``uid-NAME``."""
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
    if spec.static:
        pod["metadata"]["annotations"] = {SOURCE: "file"}
    if spec.status:
        pod["status"] = spec.status
    _check(body)
    return pod


def _check(spec: dict[str, Any]) -> None:
    """Checks the free-form parts of a pod.

    Raises:
        ValueError: a field has the wrong type; the message names it.
    """
    _check_resources(spec, "spec")
    for key in ("initContainers", "containers"):
        listed = spec.get(key)
        if listed is not None and not isinstance(listed, list | tuple):
            raise ValueError(f"spec.{key}: expected a list")
        for number, container in enumerate(listed or ()):
            where = f"spec.{key}[{number}]"
            name = container.get("name") if isinstance(container, dict) else None
            if not (name and isinstance(name, str)):
                raise ValueError(f"{where}: expected a mapping with a name")
            _check_resources(container, where)


def _check_resources(holder: dict[str, Any], where: str) -> None:
    resources = holder.get("resources")
    places = {f"{where}.resources": resources}
    if isinstance(resources, dict):
        places |= {f"{where}.resources.{kind}": one for kind, one in resources.items()}
    for place, value in places.items():
        # Claims are a list, which no manager reads.
        if value is not None and not isinstance(value, dict) and not place.endswith(".claims"):
            raise ValueError(f"{place}: expected a mapping")
    for kind in _QUANTITIES:
        for resource, amount in (places.get(f"{where}.resources.{kind}") or {}).items():
            _check_quantity(amount, f"{where}.resources.{kind}.{resource}")


_QUANTITIES = ("requests", "limits")


def _check_quantity(amount: Any, place: str) -> None:
    """Rejects quantities that the API server would reject before a kubelet sees them."""
    is_scalar = isinstance(amount, str | int | float) and not isinstance(amount, bool)
    # Longer ones are never used in calculations.
    if amount is None or (
        is_scalar and len(str(amount)) <= _LONGEST and _QUANTITY.fullmatch(str(amount))
    ):
        return
    shown = json.dumps(amount)[:_SHOWN]
    raise ValueError(f'{place}: expected a quantity such as "2" or "1Gi", got {shown}')


def uid(pod: str) -> str:
    """The uid of a pod."""
    return f"uid-{pod}"


def pod_name(uid: str) -> str:
    """The name of the pod with this uid; the inverse of `uid`."""
    return uid.removeprefix("uid-")


def containers(pod: Pod) -> tuple[str, ...]:
    """The names of a pod's containers, init containers first."""
    spec = pod["spec"]
    both = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return tuple(one["name"] for one in both)


def completing_containers(pod: Pod) -> tuple[str, ...]:
    """The names of the init containers that must end before the next container starts."""
    inits = pod["spec"].get("initContainers") or ()
    return tuple(one["name"] for one in inits if one.get("restartPolicy") != "Always")


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
    """Converts integers to strings where the configuration format requires strings."""
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
    devices: dict[str, Any],
    preferred: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    failing: Collection[str] = (),
) -> tuple[DeviceResource, ...]:
    """Creates the devices that plugins report from the expanded devices of a case.

    By default, ids are ``d0``, ``d1`` and so on, in order. `preferred` lists the devices that each
    resource's plugin would prefer to allocate, in order; `failing` are the resources whose plugins
    fail.

    Raises:
        ValueError: an expression's value is not a list of devices.
    """
    return tuple(
        DeviceResource(
            name,
            tuple(_device(number, one) for number, one in enumerate(ones)),
            preferred.get(name, ()),
            name in failing,
        )
        for name, ones in msgspec.convert(devices, _Devices).items()
    )


class _WrittenDevice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device without expressions."""

    numa: tuple[int, ...] | None = None
    healthy: bool = True
    id: str = ""


_Devices = dict[str, tuple[_WrittenDevice | tuple[int, ...] | None, ...]]


def _device(number: int, spec: _WrittenDevice | tuple[int, ...] | None) -> Device:
    form = spec if isinstance(spec, _WrittenDevice) else _WrittenDevice(spec)
    nodes = None if form.numa is None else NUMASet(form.numa)
    return Device(device_id(number, form.id), nodes, form.healthy)


def without_cpus(machine: MachineInfo, offline: CPUSet) -> MachineInfo:
    """The machine as it would be discovered with some CPUs offline.

    Cores with no threads left disappear; nodes remain because of their memory.
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
    """Changes the memory of some nodes and adjusts the machine's total accordingly.

    Raises:
        ValueError: there is no such node, or the node has no huge pages of that size.
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
