"""Generates pods of every QoS class, and devices for them, some of which are unhealthy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from numaproof.conformance.cases.schema import ContainerSpec, DeviceSpec, PodSpec, Quantities
from numaproof.conformance.judging.pods import amount

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.conformance.fuzzing.generation.focus import Focus


MIB = 1 << 20
_PAGES_MIB = {"hugepages-2Mi": 2, "hugepages-1Gi": 1024}

Kind = Literal["guaranteed", "both", "requests", "best effort"]
_ANY: tuple[Kind, ...] = ("guaranteed", "both", "requests", "best effort")


@dataclass(frozen=True, slots=True)
class Room:
    """Limits for the size of pods: the machine, estimates of what is free, and the devices.

    `free_memory` is in MiB; `devices` is the number of devices by resource.
    """

    facts: Facts
    free_cpus: int
    free_memory: int
    devices: Mapping[str, int]


def pod(choices: Choices, name: str, room: Room, focus: Focus) -> PodSpec:
    """Generates a pod with one to three app containers and up to two init containers.

    Most are Guaranteed. A single container can change the QoS class of the whole pod.
    """
    mixed = choices.chance(2 if focus.any_class else 6)
    apps = choices.pick((1, 1, 1, 2, 3))
    inits = choices.pick((0, 1, 1, 2)) if focus.inits else 0
    whole = focus.pod_level and choices.chance(2)
    mixed = mixed or (whole and choices.chance(2))
    kinds = [choices.pick(_ANY) if mixed else "guaranteed" for _ in range(apps + inits)]
    containers = {
        f"app{number}": _container(choices, room, focus, kinds[number]) for number in range(apps)
    }
    init = {
        f"init{number}": _container(
            choices, room, focus, kinds[apps + number], restart=_restart(choices, focus)
        )
        for number in range(inits)
    }
    asked = [*containers.values(), *init.values()]
    resources = _of_pod(choices, room, asked) if whole else {}
    return PodSpec(pod=name, containers=containers, init=init, resources=resources)


_Restart = Literal["", "Always", "app"]
"""The restart policy of an init container, or that it is an app container."""


def _restart(choices: Choices, focus: Focus) -> _Restart:
    """Chooses sidecars for one in three init containers, if the run has both kinds."""
    kind = focus.inits[-1] if choices.chance(3) else focus.inits[0]
    return "Always" if kind == "sidecar" else ""


def _container(
    choices: Choices, room: Room, focus: Focus, kind: Kind, *, restart: _Restart = "app"
) -> ContainerSpec:
    policy: Literal["Always"] | None = "Always" if restart == "Always" else None
    others = _others(choices, room, focus)
    if kind == "best effort":
        return ContainerSpec(limits=others, restartPolicy=policy)
    base: Quantities = {
        "cpu": _cpus(choices, room),
        "memory": _memory(choices, room, focus, runs_to_completion=not restart),
    }
    limits = {**base, **others}
    match kind:
        case "guaranteed":
            # Requests default to the limits.
            requests = dict(limits) if choices.chance(8) else {}
            return ContainerSpec(requests=requests, limits=limits, restartPolicy=policy)
        case "both":
            less: Quantities = {"cpu": "100m", "memory": "32Mi"}
            part = choices.pick(("cpu", "memory"))
            requests = {**limits, part: less[part]}
            return ContainerSpec(requests=requests, limits=limits, restartPolicy=policy)
    return ContainerSpec(requests={**base, **others}, limits=others, restartPolicy=policy)


def _others(choices: Choices, room: Room, focus: Focus) -> Quantities:
    found: Quantities = {}
    for resource in focus.hugepages:
        if choices.chance(2):
            size = _PAGES_MIB[resource]
            every = _pages(room.facts, size)
            found[resource] = f"{size * choices.pick((1, 16, 64, 100, max(1, every), every + 1))}Mi"
    for resource, count in room.devices.items():
        if not choices.chance(3):
            found[resource] = str(choices.pick((1, 1, 1, 2, max(1, count), count + 1)))
    return found


def _pages(facts: Facts, size: int) -> int:
    """Returns the number of the machine's huge pages of `size` MiB."""
    return sum(
        pool.num_pages
        for node in facts.machine.topology or ()
        for pool in node.hugepages or ()
        if pool.page_size == size * 1024
    )


def _cpus(choices: Choices, room: Room) -> str:
    """Generates a CPU amount: some CPUs, whole cores, a node, all free CPUs, any, or a fraction."""
    facts = room.facts
    count = len(facts.all)
    kind = choices.pick(("few", "few", "few", "cores", "node", "free", "any", "part"))
    match kind:
        case "few":
            whole = choices.integer(1, min(4, count))
        case "cores":
            core = max(len(one) for one in facts.cores)
            whole = core * choices.integer(1, max(1, len(facts.cores) - 1))
        case "node":
            whole = max(map(len, facts.nodes.values())) + choices.pick((0, -1, 1))
        case "free":
            whole = room.free_cpus - choices.pick((0, 1, 2))
        case "any":
            whole = choices.integer(1, count + 1)
        case _:
            return choices.pick(("500m", "1500m", "1.5", "100m", "0"))
    whole = max(1, whole)
    return f"{whole}000m" if choices.chance(8) else str(whole)


def _memory(choices: Choices, room: Room, focus: Focus, *, runs_to_completion: bool) -> str:
    """Generates a memory size; under the Static policy, sometimes in proportion to a node's.

    Init containers that pass need more, because what they have alone becomes free afterwards.
    """
    if not focus.static_memory:
        return "64Mi"
    nodes = [node.memory // MIB for node in room.facts.machine.topology or () if node.memory]
    kinds = ("little", "little", "part", "node", "more", "all", "free", "free")
    kind = choices.pick(("part", "part", "node", "free") if runs_to_completion else kinds)
    match kind:
        case "little":
            return choices.pick(("64Mi", "64Mi", "100M", "1048577"))
        case "part":
            size = choices.pick(nodes) * choices.integer(1, 7) // 8
        case "node":
            size = choices.pick(nodes) - choices.pick((128, 256, 384, 0))
        case "more":
            size = choices.pick(nodes) * choices.integer(9, 20) // 8
        case "free":
            # If anything that should be free is not, such a pod is refused.
            size = room.free_memory - choices.pick((0, 0, 1, 64))
        case _:
            size = sum(nodes) - choices.pick((128, 256, 512, 0))
    return f"{max(1, size)}Mi"


def whole_memory(facts: Facts) -> int:
    """Returns the bytes of memory on all nodes, without huge pages."""
    return sum(
        node.memory - sum(one.page_size * 1024 * one.num_pages for one in node.hugepages or ())
        for node in facts.machine.topology or ()
    )


def memory_of(pod: PodSpec, *, after_init: bool = False) -> int:
    """Estimates the MiB of memory that a pod holds, in total or once its init containers ended."""
    sizes = {
        name: int(amount(spec.limits.get("memory", 0)) // MIB)
        for name, spec in (*pod.init.items(), *pod.containers.items())
    }
    apps = sum(sizes[name] for name in pod.containers)
    inits = [sizes[name] for name in pod.init]
    return apps if after_init else max(apps, *inits, 0)


def _of_pod(
    choices: Choices, room: Room, containers: Sequence[ContainerSpec]
) -> dict[str, Quantities]:
    """Generates pod-level resources: usually all, or some that serve as defaults for others.

    They cover the sum of the containers' resources, as the API server requires.
    """
    amounts: Quantities = {
        "cpu": _at_least(_cpus(choices, room), _together("cpu", containers)),
        "memory": _at_least("512Mi", _together("memory", containers)),
    }
    less = _at_least("256Mi", _together("memory", containers))
    requests: Quantities = {**amounts, "memory": less} if choices.chance(3) else dict(amounts)
    match choices.pick(("all", "all", "all", "limits", "requests", "one", "nothing")):
        case "limits":
            return {"limits": amounts}
        case "requests":
            return {"requests": requests}
        case "one":
            kind = choices.pick(("cpu", "memory"))
            return {"requests": {kind: requests[kind]}, "limits": {kind: amounts[kind]}}
        case "nothing":
            return {"limits": {}}
    return {"requests": requests, "limits": amounts}


def _together(resource: str, containers: Sequence[ContainerSpec]) -> Fraction:
    """Returns an upper bound on the containers' total request for a resource."""
    written = (
        max(amount(quantities.get(resource, "0")) for quantities in (one.requests, one.limits))
        for one in containers
    )
    return sum(written, Fraction(0))


def _at_least(quantity: str, least: Fraction) -> str:
    if amount(quantity) >= least:
        return quantity
    return str(least) if least.denominator == 1 else f"{least * 1000}m"


RESOURCES = ("vendor.example/nic", "vendor.example/gpu")

DeviceLists = dict[str, tuple[DeviceSpec, ...]]


def device_lists(choices: Choices, facts: Facts, count: int) -> DeviceLists:
    """Generates up to four devices for each of `count` resources."""
    return {resource: _some(choices, facts, 4) for resource in RESOURCES[:count]}


def changed_devices(
    choices: Choices, facts: Facts, now: DeviceLists, requested_resources: Collection[str]
) -> DeviceLists:
    """Returns the devices after a change in health, an addition, or the removal of the last ones.

    The kubelet picks any of several devices with the same nodes. Changes therefore apply to all
    devices of a resource with the same nodes, and new devices come last, so that later answers do
    not depend on the choice.

    Devices are removed only if no pod has requested the resource (`requested_resources`), because
    the kubelet panics if a container's device is missing.
    """
    resource = choices.pick(tuple(now))
    devices = now[resource]
    kind = choices.pick(("health", "health", "more", "fewer"))
    if kind == "more" or not devices:
        after = (*devices, *_some(choices, facts, 2))
    elif kind == "fewer" and resource not in requested_resources:
        after = devices[: choices.integer(0, len(devices) - 1)]
    else:
        chosen = choices.pick(devices)
        after = tuple(
            DeviceSpec(one.numa, not one.healthy) if one == chosen else one for one in devices
        )
    return {**now, resource: after}


def _some(choices: Choices, facts: Facts, most: int) -> tuple[DeviceSpec, ...]:
    nodes = [*facts.nodes]
    return tuple(DeviceSpec(_place(choices, nodes)) for _ in range(choices.integer(1, most)))


def _place(choices: Choices, nodes: list[int]) -> tuple[int, ...] | None:
    kind = choices.pick(("one", "one", "one", "one", "none", "several", "empty"))
    match kind:
        case "one":
            return (choices.pick(nodes),)
        case "several":
            return tuple(choices.some(nodes, 1, min(3, len(nodes))))
        case "empty":
            return ()
        case _:
            return None


def healthy_devices(now: Mapping[str, tuple[DeviceSpec, ...]]) -> dict[str, int]:
    """Returns the number of healthy devices by resource."""
    return {name: sum(one.healthy for one in devices) for name, devices in now.items()}
