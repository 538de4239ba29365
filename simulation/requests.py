"""What a container, or a pod as a whole, is entitled to from the managers, and why not more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from numaproof.reference.devices import policy
from numaproof.reference.errors import AllocationError
from numaproof.reference.memory import requests
from numaproof.reference.pods import containers, quantity
from numaproof.simulation.amounts import CPU

if TYPE_CHECKING:
    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.node import NodeSetup
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod


def asks(
    setup: NodeSetup, devices: DeviceState, pod: Pod, container: PodContainer | None
) -> dict[str, int]:
    """Amounts by resource, in CPUs, bytes and devices; `container` is None for the whole pod."""
    found = {CPU: exclusive_cpus(pod, container)} if setup.cpu else {}
    if setup.memory and why_no_memory(setup, pod, container) is None:
        found |= requests.part(pod, container) if container else setup.memory.at_once(pod)
    if container is None:
        names = {name for one in pod.containers for name in policy.requested(devices, one)}
        for name in sorted(names):
            found[name] = containers.at_once(pod.containers, partial(_devices, devices, name))
    else:
        found |= policy.requested(devices, container)
    return {resource: count for resource, count in found.items() if count}


def exclusive_cpus(pod: Pod, container: PodContainer | None) -> int:
    """The number of exclusive CPUs; `container` is None for the whole pod."""
    return pod.exclusive_cpus(container) if container else pod.exclusive_cpus_at_once()


def why_no_cpus(setup: NodeSetup, pod: Pod, container: PodContainer | None) -> str | None:
    """Why there are no exclusive CPUs to assign; None if there are some."""
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
    """Why there is no memory to pin to nodes; None if there is some."""
    if setup.memory is None:
        return "its policy is None"
    if (reason := _not_served(pod)) is not None:
        return reason
    try:
        amounts = requests.part(pod, container) if container else setup.memory.at_once(pod)
    except AllocationError:
        return "an amount is not a whole number of bytes to the API machinery"
    return None if amounts else "no memory is requested"


def _not_served(pod: Pod) -> str | None:
    if pod.qos != "Guaranteed":
        return f"the pod is {pod.qos}, not Guaranteed"
    return "the pod has pod-level resources" if pod.shared_pool else None


def _devices(state: DeviceState, resource: str, container: PodContainer) -> int:
    return policy.requested(state, container).get(resource, 0)


def extended(pod: Pod) -> dict[str, int]:
    """How much the pod requests of each extended resource, which usually means devices.

    (Kubernetes documentation, "Extended resources".)
    """
    names = {
        name
        for container in pod.containers
        for name in (*container.requests, *container.limits)
        if "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
    }
    found = {
        name: containers.at_once(pod.containers, partial(_count, name)) for name in sorted(names)
    }
    return {name: count for name, count in found.items() if count}


def _count(resource: str, container: PodContainer) -> int:
    return quantity.value(container.limits.get(resource) or container.requests.get(resource, 0))
