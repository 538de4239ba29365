"""What device plugins report: devices on no, one or several NUMA nodes, healthy or not.

Of devices with the same nodes a kubelet picks any. So whatever changes changes for all devices
of a resource that have the same nodes, and new ones stand behind the others: what is answered
later does not depend on which device was picked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases.schema import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.fuzzing.generation.choices import Choices

RESOURCES = ("vendor.example/nic", "vendor.example/gpu")

Lists = dict[str, tuple[DeviceSpec, ...]]


def lists(choices: Choices, facts: Facts, count: int) -> Lists:
    """The devices of `count` resources: up to four each."""
    return {resource: _some(choices, facts, 4) for resource in RESOURCES[:count]}


def changed(choices: Choices, facts: Facts, now: Lists, asked: Collection[str]) -> Lists:
    """The lists after one change: health, more devices, or the last ones gone.

    Devices go only where no pod has asked for their resource (`asked`): a kubelet panics on a
    container whose device has gone.
    """
    resource = choices.pick(tuple(now))
    devices = now[resource]
    kind = choices.pick(("health", "health", "more", "fewer"))
    if kind == "more" or not devices:
        after = (*devices, *_some(choices, facts, 2))
    elif kind == "fewer" and resource not in asked:
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


def healthy(now: Mapping[str, tuple[DeviceSpec, ...]]) -> dict[str, int]:
    """How many healthy devices each resource has."""
    return {name: sum(one.healthy for one in devices) for name, devices in now.items()}
