"""Violators of the requirements of the whole node: its state, restarts, and refused pods."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference import startup
from numaproof.reference.checkpoints import devices as device_checkpoint
from numaproof.reference.devices.state import DeviceState, all_held
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs
from quality.violators.memory_checkpoint.parts import older_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.reference.memory.policy import StaticMemoryPolicy
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("node-state")


# What the state keeps


def _shown(
    changes: Changes,
    change: Callable[[StartedNode, Pod, str, dict[str, Any]], dict[str, Any]],
) -> None:
    """Lets the state show for a container what `change` makes of the answer's fields."""

    def state(original: Any, self: StartedNode, args: messages.NoArgs) -> messages.State:
        answer: messages.State = original(self, args)
        pods = {
            uid: {
                name: messages.Container(**change(self, self.pods[uid], name, _fields(container)))
                for name, container in containers.items()
            }
            for uid, containers in answer.pods.items()
        }
        return messages.State(answer.shared, pods, answer.files)

    changes.around(StartedNode, "state", state)


def _fields(container: messages.Container) -> dict[str, Any]:
    return {name: getattr(container, name) for name in container.__struct_fields__}


def _kind(pod: Pod, name: str) -> str:
    container = pod.container(name)
    return "sidecar" if container.sidecar else "init" if container.init else "app"


@seeds("NODE-STATE-001")
def state_forgets_the_memory_of_init_containers(changes: Changes) -> None:
    """A plausible author shows memory of what runs beside the app containers."""
    _shown(
        changes,
        lambda node, pod, name, fields: (
            {**fields, "memory": ()} if _kind(pod, name) == "init" else fields
        ),
    )


@seeds("NODE-STATE-001")
def state_forgets_huge_pages(changes: Changes) -> None:
    """A plausible author keeps one amount for each container."""
    _shown(
        changes,
        lambda node, pod, name, fields: {
            **fields,
            "memory": tuple(block for block in fields["memory"] if block.type == "memory"),
        },
    )


@seeds("NODE-STATE-001")
def state_keeps_devices_of_one_resource(changes: Changes) -> None:
    """A plausible author keeps the devices of the resource that was allocated last."""
    _shown(
        changes,
        lambda node, pod, name, fields: {
            **fields,
            "devices": fields["devices"] and dict([*fields["devices"].items()][-1:]),
        },
    )


@seeds("NODE-STATE-001")
def state_forgets_the_devices_of_sidecars(changes: Changes) -> None:
    """A plausible author shows devices of app containers."""
    _shown(
        changes,
        lambda node, pod, name, fields: (
            {**fields, "devices": {}}
            if fields["devices"] and _kind(pod, name) == "sidecar"
            else fields
        ),
    )


@seeds("NODE-STATE-001")
def state_keeps_the_affinity_of_the_last_pod(changes: Changes) -> None:
    """A plausible author keeps affinity for the pod that is being admitted."""

    def admit(original: Any, self: StartedNode, args: messages.AdmitArgs) -> Any:
        self.affinity.clear()
        return original(self, args)

    changes.around(StartedNode, "admit", admit)


@seeds("NODE-STATE-001")
def state_keeps_the_affinity_of_pinned_containers_alone(changes: Changes) -> None:
    """A plausible author keeps the affinity of containers that were given something."""

    def change(_: StartedNode, __: Pod, ___: str, fields: dict[str, Any]) -> dict[str, Any]:
        if fields["exclusive"] or fields["memory"] or any((fields["devices"] or {}).values()):
            return fields
        return {**fields, "affinity": messages.Hint(None, preferred=False)}

    _shown(changes, change)


# The memory checkpoint


def _older_memory(changes: Changes, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` work on what the checkpoint says to earlier releases."""

    def seal(original: Any, format_: Any, content: Any) -> Any:
        content = copy.deepcopy(content)
        change(content)
        return original(format_, content)

    older_part(changes, seal)


@seeds("NODE-STATE-002")
def memory_checkpoint_lists_one_block_of_each_container(changes: Changes) -> None:
    """A plausible author lists a container's memory, and forgets its huge pages."""

    def change(content: dict[str, Any]) -> None:
        for containers in content["entries"].values():
            for name, blocks in containers.items():
                containers[name] = [one for one in blocks if one["type"] == "memory"]

    _older_memory(changes, change)


@seeds("NODE-STATE-002")
def memory_checkpoint_reserves_a_block_on_its_first_node(changes: Changes) -> None:
    """A plausible author writes all of a group's reserved memory on its lowest node."""

    def change(content: dict[str, Any]) -> None:
        nodes = content["machineState"]
        for node, memory in nodes.items():
            first = nodes.get(memory["cells"][0]) if memory["cells"] else None
            for kind, table in memory["memoryMap"].items():
                if first is not None and node != memory["cells"][0]:
                    first["memoryMap"][kind]["reserved"] += table["reserved"]
                    table["reserved"] = 0

    _older_memory(changes, change)


@seeds("NODE-STATE-002")
def memory_checkpoint_writes_free_memory_of_an_empty_node(changes: Changes) -> None:
    """A plausible author takes free memory for what is free when nothing is reserved."""

    def change(content: dict[str, Any]) -> None:
        for memory in content["machineState"].values():
            for table in memory["memoryMap"].values():
                table["free"] = table["allocatable"]

    _older_memory(changes, change)


@seeds("NODE-STATE-002")
def huge_pages_are_reserved_for_the_system(changes: Changes) -> None:
    """A plausible author adds a node's huge pages to what the system has of its memory."""

    def make_static(original: Any, *args: Any) -> StaticMemoryPolicy:
        policy: StaticMemoryPolicy = original(*args)
        empty = {}
        for node, memory in policy.empty.items():
            table = memory.tables["memory"]
            pages = sum(own.total for kind, own in memory.tables.items() if kind != "memory")
            tables = {**memory.tables, "memory": table._replace(system=table.system + pages)}
            empty[node] = dataclasses.replace(memory, tables=tables)
        return dataclasses.replace(policy, empty=empty)

    changes.around(memory_policies, "make_static", make_static)


# Restarts


def _restarted(changes: Changes, change: Callable[[StartedNode], object]) -> None:
    """Lets a start end with `change`."""

    def start(original: Any, *args: Any) -> StartedNode:
        node: StartedNode = original(*args)
        change(node)
        node.save()
        return node

    changes.around(startup, "start", start)


@seeds("NODE-RESTART-001")
def restart_takes_the_cpus_of_sidecars(changes: Changes) -> None:
    """A plausible author takes back at a start what init containers had, sidecars among them."""

    def change(node: StartedNode) -> None:
        for pod in node.pods.values():
            for container in pod.containers:
                if container.sidecar:
                    node.cpus.end(pod.uid, container.name)

    _restarted(changes, change)


@seeds("NODE-RESTART-001")
def restart_shares_the_cpus_of_init_containers(changes: Changes) -> None:
    """A plausible author counts as free what an init container has, though it is reused."""

    def change(node: StartedNode) -> None:
        state = node.cpus.state
        had = 0
        for pod in node.pods.values():
            for container in pod.containers:
                if container.passes:
                    had |= state.of(pod.uid, container.name) or 0
        if had:
            node.cpus.state = dataclasses.replace(state, shared=state.shared | had)

    _restarted(changes, change)


@seeds("NODE-RESTART-001")
def restart_takes_memory_that_lies_on_several_nodes(changes: Changes) -> None:
    """A plausible author restores the blocks of single nodes."""

    def change(node: StartedNode) -> None:
        for uid, name, blocks in tuple(node.memory.state):
            if any(block.nodes.bit_count() > 1 for block in blocks):
                node.memory.end(uid, name)

    _restarted(changes, change)


@seeds("NODE-RESTART-001")
def restart_keeps_devices_of_one_resource(changes: Changes) -> None:
    """A plausible author restores one entry for each container."""

    def load(original: Any, *args: Any) -> DeviceState:
        state: DeviceState = original(*args)
        held = {
            uid: {name: dict([*own.items()][-1:]) for name, own in containers.items()}
            for uid, containers in state.held.items()
        }
        return dataclasses.replace(state, held=held, taken=all_held(held))

    changes.around(device_checkpoint, "load", load)


@seeds("NODE-RESTART-001")
def restart_gives_held_devices_to_others(changes: Changes) -> None:
    """A plausible author restores who holds devices, not that they are taken."""
    changes.around(
        device_checkpoint,
        "load",
        lambda original, *args: dataclasses.replace(original(*args), taken={}),
    )
