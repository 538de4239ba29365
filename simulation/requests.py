"""Computes and formats the resources that containers and pods request from the managers."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import format_numbers, plural
from numaproof.inputs.sizes import size
from numaproof.protocol.sets import NUMASet
from numaproof.reference.devices import policy
from numaproof.reference.errors import AllocationError
from numaproof.reference.memory import requests
from numaproof.reference.pods import containers, quantity
from numaproof.simulation.manifests import likely_amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.node import NodeSetup, StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


CPU = "cpu"
_MAX_DIGITS = 4


def is_memory(resource: str) -> bool:
    """Whether amounts of the resource are in bytes."""
    return resource == "memory" or resource.startswith("hugepages-")


def amount(resource: str, count: int) -> str:
    """Formats an amount: ``4 CPUs``, ``1.5 GiB of memory``, ``2 vendor.example/nic``."""
    if resource == CPU:
        return plural(count, "CPU")
    return f"{size(count)} of {resource}" if is_memory(resource) else f"{count} {resource}"


def room(resource: str, count: int) -> str:
    """Formats an amount like `amount`, but CPUs are in thousandths: ``1.5 CPUs``."""
    if resource != CPU or count % 1000 == 0:
        return amount(resource, count // 1000 if resource == CPU else count)
    return f"{count / 1000:g} CPUs"


def amounts(counts: Iterable[tuple[str, int]]) -> str:
    """Formats several amounts, separated by commas."""
    return ", ".join(amount(resource, count) for resource, count in counts)


def free_of(resource: str, free: int, requested_amount: int) -> str:
    """Formats a free amount: ``3 CPUs free, 4 needed``, or ``5 CPUs free`` if that is enough.

    Similar sizes get as many digits as needed to distinguish them.
    """
    if free >= requested_amount:
        return f"{amount(resource, free)} free"
    if not is_memory(resource):
        return f"{amount(resource, free)} free, {requested_amount} needed"
    for digits in range(1, _MAX_DIGITS + 1):
        have, wanted = size(free, digits), size(requested_amount, digits)
        if have != wanted:
            return f"{have} of {resource} free, {wanted} needed"
    return f"{free} B of {resource} free, {requested_amount} B needed"


def nodes_text(nodes: NUMASet) -> str:
    """Formats nodes: ``node 0``, ``nodes 0-1``."""
    return format_numbers("node", nodes)


def mask_text(nodes: int) -> str:
    """Formats a bit mask of nodes like `nodes_text`."""
    return nodes_text(NUMASet.from_mask(nodes))


def requested_amounts(
    setup: NodeSetup, devices: DeviceState, pod: Pod, container: PodContainer | None
) -> dict[str, int]:
    """Returns CPUs, bytes and devices by resource; `container` is None for the whole pod."""
    found = {CPU: exclusive_cpus(pod, container)} if setup.cpu else {}
    if setup.memory and why_no_memory(setup, pod, container) is None:
        found |= requests.container_amounts(pod, container) if container else setup.memory.peak(pod)
    if container is None:
        names = {name for one in pod.containers for name in policy.requested_devices(devices, one)}
        for name in sorted(names):
            found[name] = containers.peak(pod.containers, partial(_devices, devices, name))
    else:
        found |= policy.requested_devices(devices, container)
    return {resource: count for resource, count in found.items() if count}


def exclusive_cpus(pod: Pod, container: PodContainer | None) -> int:
    """Returns the number of exclusive CPUs; `container` is None for the whole pod."""
    return pod.exclusive_cpus(container) if container else pod.peak_exclusive_cpus()


def why_no_cpus(setup: NodeSetup, pod: Pod, container: PodContainer | None) -> str | None:
    """Explains why there are no exclusive CPUs to assign; None if there are some."""
    if setup.cpu is None:
        return "its policy is none"
    if exclusive_cpus(pod, container):
        return None
    if (reason := _not_served(pod)) is not None:
        return reason
    asked = container.requests.get(CPU, 0) if container else 0
    if quantity.parse(asked):
        return f"{asked} is not a whole number of CPUs, so they come from the shared pool"
    return "no whole CPUs are requested" if container is None else "no CPUs are requested"


def why_no_memory(setup: NodeSetup, pod: Pod, container: PodContainer | None) -> str | None:
    """Explains why there is no memory to pin; None if there is some."""
    if setup.memory is None:
        return "its policy is None"
    if (reason := _not_served(pod)) is not None:
        return reason
    try:
        amounts = (
            requests.container_amounts(pod, container) if container else setup.memory.peak(pod)
        )
    except AllocationError:
        return inexact_memory(pod, container)[0]
    return None if amounts else "no memory is requested"


def inexact_memory(pod: Pod, container: PodContainer | None) -> tuple[str, tuple[str, ...]]:
    """Names an amount that the kubelet cannot convert to bytes, and the amount to write instead.

    `container` is None for the whole pod, which has such an amount in itself or a container.
    """
    parts = (container,) if container else pod.containers
    listed = (*(part.requests for part in parts), pod.requests)
    asked = [item for each in listed for item in sorted(each.items())]
    kind, text = next(
        (name, text) for name, text in asked if is_memory(name) and quantity.exact(text) is None
    )
    instead = quantity.canonical(math.ceil(quantity.parse(text)), "binary")
    message = f"the kubelet cannot convert {kind} {text} to a whole number of bytes"
    if likely := likely_amount(text):
        return message, (f"write {likely} if that is meant",)
    return message, () if quantity.exact(instead) is None else (f"write {instead}",)


def _not_served(pod: Pod) -> str | None:
    if pod.qos != "Guaranteed":
        return f"the pod is {pod.qos}, not Guaranteed: {_why_not_guaranteed(pod)}"
    return "the pod has pod-level resources" if pod.shared_pool else None


_NAMES = (("cpu", "CPU"), ("memory", "memory"))
"""The resources that decide the QoS class."""


def _why_not_guaranteed(pod: Pod) -> str:
    """Names what keeps a pod from being Guaranteed."""
    if pod.requests or pod.limits:
        return _unequal("the pod", pod.requests, pod.limits)
    unequal = (_unequal(f"container {c.name}", c.requests, c.limits) for c in pod.containers)
    return next(filter(None, unequal), "")


def _unequal(who: str, requests: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    """Describes the first difference between requests and limits; empty if there is none."""
    missing = [name for resource, name in _NAMES if not quantity.parse(limits.get(resource, 0))]
    if missing:
        return f"{who} has no {' or '.join(missing)} limit"
    for resource, name in _NAMES:
        asked, limit = requests.get(resource, 0), limits[resource]
        if quantity.parse(asked) != quantity.parse(limit):
            return f"{who} requests {asked} {name}, but its limit is {limit}"
    return ""


def _devices(state: DeviceState, resource: str, container: PodContainer) -> int:
    return policy.requested_devices(state, container).get(resource, 0)


def extended_resources_of(container: PodContainer) -> dict[str, int]:
    """Returns a container's requests for extended resources, which usually represent devices.

    (Kubernetes documentation, "Extended resources".)
    """
    names = {
        name
        for name in (*container.requests, *container.limits)
        if "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
    }
    found = {name: _count(name, container) for name in sorted(names)}
    return {name: count for name, count in found.items() if count}


def extended_resources(pod: Pod) -> dict[str, int]:
    """Returns the pod's requests for extended resources, like `extended_resources_of`."""
    names = {name for one in pod.containers for name in extended_resources_of(one)}
    found = {name: containers.peak(pod.containers, partial(_count, name)) for name in sorted(names)}
    return {name: count for name, count in found.items() if count}


def missing_devices(node: StartedNode, pod: Pod) -> dict[str, int]:
    """Returns the extended resources that a pod requests but no device plugin provides."""
    served = node.device_manager.state.serves
    return {name: n for name, n in extended_resources(pod).items() if not served(name)}


def _count(resource: str, container: PodContainer) -> int:
    return quantity.value(container.limits.get(resource) or container.requests.get(resource, 0))
